import type { ReactNode } from "react";

const paths = {
  home: "M2.5 7 8 2.5 13.5 7v6.5h-4v-4h-3v4h-4z",
  agents: "M3 3.5h10v7H8l-3 2.5v-2.5H3z",
  approvals: "M8 2 13 4v4c0 3-2 5-5 6-3-1-5-3-5-6V4zM5.8 8l1.6 1.6L10.4 6.4",
  runs: "M4 3v10M4 5.5h4.5a2 2 0 0 1 2 2v0a2 2 0 0 0 2 2H13M4 11h5",
  dispatches: "M2.5 8.5 4.5 3h7l2 5.5v4h-11zM2.5 8.5h3l1 1.5h3l1-1.5h3",
  trace: "M2.5 3.5h7M4.5 8h7M7.5 12.5h6",
  specs: "M4 2h5.5L12.5 5v9h-8.500zM9.5 2v3h3M6 8h4M6 10.500h4",
  guidelines:
    "M3 3.500h4a1.5 1.5 0 0 1 1 1v9a2 2 0 0 0-1.5-1H3zM13 3.500H9a1.5 1.5 0 0 0-1 1v9a2 2 0 0 1 1.5-1H13z",
  server: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01",
  chevron: "m6 4 4 4-4 4",
  down: "m4 6 4 4 4-4",
  close: "m4 4 8 8M12 4l-8 8",
  menu: "M2.5 4.500h11M2.5 8h11M2.5 11.500h11",
  plus: "M8 3v10M3 8h10",
  stop: "M4.5 4.500h7v7h-7z",
  send: "M8 13V3.500M4 7l4-4 4 4",
  check: "m3 8.5 3.2 3L13 4.5",
  warning: "M8 2.5 14 13H2zM8 6.500v3M8 11.400h.01",
  search: "M7 2.500a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.3 10.300l3.2 3.2",
  copy: "M5.5 5.500h8v8h-8zM10.5 5.500v-3h-8v8h3",
  retry: "M13 8a5 5 0 1 1-1.6-3.700M13 2.500v3h-3",
  wait: "M8 2.500a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 5v3l2 1.5",
  sun: "M8 5.200a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.600zM8 1.500v1M8 13.500v1M1.5 8h1M13.5 8h1M3.4 3.400l.7.7M11.9 11.900l.7.7M3.4 12.600l.7-.7M11.9 4.100l.7-.7",
  moon: "M13 9.500A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.500z",
  system: "M2.5 3h11v7.500h-11zM6 13h4",
  key: "M10.5 2.500a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM8.3 7.7 3 13v-0M4.5 11.5 6 13",
  brain: "M6 13V11.500H4.500V9L3 8.5 4.5 6A4 4 0 0 1 12.5 6.500c0 2-1 2.5-1 4V13",
  file: "M4 2h5.500L12.5 5v9H4zM9.5 2v3h3",
  terminal: "m3 5 3 3-3 3M8 11.500h5",
  tool: "M9.5 4.500a3 3 0 0 1 3.8-1.200L11.5 5l.5 1.5 1.5.5 1.2-1.300a3 3 0 0 1-4.2 3.500L5.5 13.5 3 11l4.8-4.500a3 3 0 0 1 1.7-2z",
  branch: "M4.5 3v10M4.5 9.500c4 0 7-1 7-4.500V3.5",
} as const;

export type IconName = keyof typeof paths;

/** A decorative icon next to a text. */
export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }): ReactNode {
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" fill="none" aria-hidden="true" className="shrink-0">
      <path
        d={paths[name]}
        stroke="currentColor"
        strokeWidth="1.4"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
