import type { Cents } from "../money.ts";

/** A title on the shelves. `stock` counts copies that no customer has ordered yet. */
export interface Book {
  readonly isbn: string;
  readonly title: string;
  readonly author: string;
  readonly price: Cents;
  readonly stock: number;
  readonly weightGrams: number;
}
