import type { Book } from "../catalog/book.ts";
import type { Cents } from "../money.ts";

export interface CartLine {
  readonly book: Book;
  readonly quantity: number;
}

/** The most copies of one title that a cart holds. */
export const maxCopies = 10;

/** Adds copies of a book. Throws a `RangeError` when the cart would hold more than the stock. */
export function addToCart(cart: readonly CartLine[], line: CartLine): readonly CartLine[] {
  const held = cart.find((other) => other.book.isbn === line.book.isbn)?.quantity ?? 0;
  const quantity = held + line.quantity;
  if (quantity > Math.min(line.book.stock, maxCopies)) {
    throw new RangeError(
      `Only ${Math.min(line.book.stock, maxCopies)} copies of ${line.book.title} are left.`,
    );
  }
  return [...cart.filter((other) => other.book.isbn !== line.book.isbn), { book: line.book, quantity }];
}

export function subtotal(cart: readonly CartLine[]): Cents {
  return cart.reduce((sum, line) => sum + line.book.price * line.quantity, 0);
}
