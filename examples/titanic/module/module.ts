import { asFloats, defineProcessing, float32, invalid } from '@perch/processing';

const classes = ['1st', '2nd', '3rd', 'crew'] as const;

interface Passenger {
  class: (typeof classes)[number];
  sex: 'male' | 'female';
  age: 'adult' | 'child';
}

/** Rows of a table in, a probability a row out. */
export default defineProcessing({
  task: 'tabular-classification',

  preprocess(body: { passengers: Passenger[] }) {
    if (!Array.isArray(body?.passengers) || body.passengers.length === 0)
      throw invalid('passengers is missing, wanted a list of {class, sex, age}');
    const rows = body.passengers.map((passenger, at) => {
      const rank = classes.indexOf(passenger?.class);
      if (rank < 0) throw invalid(`passengers[${at}].class is none of ${classes.join(', ')}`);
      return [0, 1, 2, 3]
        .map((one) => Number(one === rank))
        .concat(Number(passenger.sex === 'female'), Number(passenger.age === 'child'));
    });
    return { inputs: { passengers: float32(rows.flat(), [rows.length, 6]) } };
  },

  postprocess(outputs, _state, ctx) {
    const survival = [...asFloats(outputs['probability']!)];
    for (const one of survival) ctx.observe('survival', one);
    return { survived: survival.map((one) => one > 0.5), probability: survival.map((one) => Number(one.toFixed(4))) };
  },
});
