import type { CartLine } from "../cart/cart.ts";
import type { Cents } from "../money.ts";

export const countries = ["DE", "FR", "PT"] as const;
export type Country = (typeof countries)[number];

const freeFrom: Cents = 5000;
const parcelPrice: Readonly<Record<Country, Cents>> = { DE: 390, FR: 590, PT: 750 };
const gramsPerParcel = 5000;

/** The price of shipping: nothing from 50 euros on, else a price per parcel of up to 5 kg. */
export function shippingCost(
  cart: readonly CartLine[],
  options: { country: Country; subtotal: Cents },
): Cents {
  if (options.subtotal >= freeFrom) return 0;
  const grams = cart.reduce((sum, line) => sum + line.book.weightGrams * line.quantity, 0);
  return parcelPrice[options.country] * Math.max(1, Math.ceil(grams / gramsPerParcel));
}
