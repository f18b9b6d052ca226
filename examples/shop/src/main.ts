import { addToCart } from "./cart/cart.ts";
import { searchBooks } from "./catalog/search.ts";
import { shelf } from "./catalog/shelf.ts";
import { checkOut } from "./checkout/checkout.ts";
import { printReceipt } from "./checkout/receipt.ts";

const [found] = searchBooks(shelf, process.argv[2] ?? "bread");
if (found === undefined) {
  console.log("No such book.");
} else {
  const result = await checkOut(addToCart([], { book: found, quantity: 1 }), {
    id: "example",
    country: "FR",
    payments: { charge: async () => ({ status: "paid", reference: "example" }) },
  });
  console.log(result.status === "placed" ? printReceipt(result.order) : result.reason);
}
