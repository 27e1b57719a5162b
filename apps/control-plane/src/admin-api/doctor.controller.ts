import { Controller, Get } from '@nestjs/common';
import { diagnosis } from '@perch/contracts';
import { DoctorService } from '../doctor/doctor.service.ts';
import { Allow, Answers } from './http.ts';

@Allow('operator')
@Controller('api/v1/doctor')
export class DoctorController {
  constructor(private readonly doctor: DoctorService) {}

  @Get()
  @Answers(diagnosis, 'What is wrong with the installation, and what to do about it')
  examine() {
    return this.doctor.examine();
  }
}
