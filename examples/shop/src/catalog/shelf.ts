import type { Book } from "./book.ts";

/** The books the example sells. */
export const shelf: readonly Book[] = [
  {
    isbn: "9780000000017",
    title: "The Quiet Harbour",
    author: "Ines Aalto",
    price: 1890,
    stock: 3,
    weightGrams: 320,
  },
  {
    isbn: "9780000000024",
    title: "Bread, Slowly",
    author: "Marek Dvořák",
    price: 2450,
    stock: 12,
    weightGrams: 780,
  },
  {
    isbn: "9780000000031",
    title: "A Field Guide to Lichens",
    author: "Odile Brandt",
    price: 3200,
    stock: 0,
    weightGrams: 540,
  },
  {
    isbn: "9780000000048",
    title: "Harbour Lights",
    author: "Tomás Rey",
    price: 1250,
    stock: 7,
    weightGrams: 210,
  },
];
