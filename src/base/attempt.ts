/** Returns the result of `work`; if it throws, `otherwise`. */
export function attempt<Value>(work: () => Value): Value | undefined;
export function attempt<Value, Other>(work: () => Value, otherwise: Other): Value | Other;
export function attempt<Value, Other>(work: () => Value, otherwise?: Other): Value | Other | undefined {
  try {
    return work();
  } catch {
    return otherwise;
  }
}
