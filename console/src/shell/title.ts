import { createContext, use } from "react";

/** Names the screen in the tab; the shell puts the number of waiting approvals before it. */
export const TitleContext = createContext<(title: string) => void>(() => undefined);

export function useTitle(): (title: string) => void {
  return use(TitleContext);
}
