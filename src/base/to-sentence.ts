/** Ends a text with a full stop, unless it has an end of its own: "did you mean model?" */
export function toSentence(text: string): string {
  const trimmed = text.trimEnd();
  return /[.!?…]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}
