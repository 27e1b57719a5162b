import { AppError } from '@perch/contracts/plain';

/**
 * The error for a request that a module cannot take: the client gets 400 and the message as it stands, so it names the
 * thing, what was wrong and what was wanted, and repeats no more of the body than a name or a number. Any other error of a
 * module is its own fault: the client learns that the module failed, the log why.
 *
 * @example throw invalid('passengers is missing, wanted a list of {class, sex, age}');
 */
export const invalid = (message: string): AppError => new AppError('invalid', message);
