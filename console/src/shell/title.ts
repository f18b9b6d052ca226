import { createContext, use } from "react";

/** Sets the tab's title; the shell puts the number of waiting approvals before it. */
export const TitleContext = createContext<(title: string) => void>(() => undefined);

export function useTitle(): (title: string) => void {
  return use(TitleContext);
}
