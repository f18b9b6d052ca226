import { useSyncExternalStore } from "react";

/** `system` follows the browser. */
export type Theme = "system" | "light" | "dark";

const storageName = "kit-theme";
const listeners = new Set<() => void>();

function readTheme(): Theme {
  const kept = localStorage.getItem(storageName);
  return kept === "light" || kept === "dark" ? kept : "system";
}

/** Applies the theme that was chosen in this browser. */
export function applyTheme(): void {
  const theme = readTheme();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function useTheme(): readonly [Theme, (theme: Theme) => void] {
  const theme = useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, readTheme);
  return [
    theme,
    (next) => {
      localStorage.setItem(storageName, next);
      applyTheme();
      for (const listener of listeners) listener();
    },
  ];
}
