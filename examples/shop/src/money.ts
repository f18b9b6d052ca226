/** An amount in whole cents. Amounts are never fractions of a cent. */
export type Cents = number;

/** Rounds half a cent up, as the price tags in the shop do. */
export function roundCents(amount: number): Cents {
  return Math.round(amount);
}

export function formatEuro(amount: Cents): string {
  const sign = amount < 0 ? "-" : "";
  const cents = Math.abs(amount);
  return `${sign}€${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, "0")}`;
}
