// The answers to the questions of lessons, from the rows of a run: no file has them.

const SCALES = { ms: 1e6, us: 1e3, ns: 1, s: 1e9 };
const TOLERANCE = 0.005;

/**
 * What an expression is in an experiment's rows: terms with `-` between them, each
 * `POLICY.COLUMN` of all tasks, or `POLICY.COLUMN of LOAD`. Throws if there is no such row.
 */
export function evaluate(text, experiment) {
  const values = text.split(" - ").map((term) => {
    const found = /^([\w-]+)\.(\w+)(?: of (\w+))?$/.exec(term.trim());
    if (!found) throw new Error(`"${term}" is no expression: POLICY.COLUMN of LOAD`);
    const [, policy, column, load] = found;
    const group = experiment.groups.find(({ axes }) =>
      (axes.workload ?? "all") === (load ?? "all"));
    const estimate = group && experiment.estimate(group.index, policy, column);
    if (!estimate) throw new Error(`there is no ${term} in these rows`);
    return estimate.mean;
  });
  return values.slice(1).reduce((left, value) => left - value, values[0]);
}

/** The right answers to a question: numbers in its unit, or places of options. */
export function answers(question, experiment) {
  if (question.number) {
    return [evaluate(question.number, experiment) / (SCALES[question.unit] ?? 1)];
  }
  if (question.sign) return [1 + Math.sign(evaluate(question.sign, experiment))];
  const values = question.options.map(([, text]) => evaluate(text, experiment));
  const best = question.pick === "least" ? Math.min(...values) : Math.max(...values);
  return values.flatMap((value, place) => (value === best ? [place] : []));
}

/** Whether an answer, as it was typed or chosen, is right. */
export function isRight(question, given, experiment) {
  const right = answers(question, experiment);
  if (!question.number) return right.includes(Number(given));
  const typed = Number(String(given).replace(",", ".").replace(/\s*[a-z]+\s*$/i, ""));
  return Number.isFinite(typed)
    && Math.abs(typed - right[0]) <= Math.max(TOLERANCE * Math.abs(right[0]), 1e-9);
}
