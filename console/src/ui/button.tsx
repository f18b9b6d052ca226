import type { ComponentProps, ReactNode } from "react";
import { Icon, type IconName } from "./icons.tsx";

const variants = {
  solid: "bg-solid text-white hover:brightness-110 border-transparent",
  plain: "bg-panel text-ink border-line hover:bg-raised",
  quiet: "border-transparent text-soft hover:bg-raised hover:text-ink",
  bad: "bg-panel text-bad border-line hover:bg-bad-back",
} as const;

interface ButtonProps extends Omit<ComponentProps<"button">, "className"> {
  readonly variant?: keyof typeof variants;
  readonly icon?: IconName | undefined;
  /** Whether its work is running: the button is disabled. */
  readonly isBusy?: boolean;
}

export function Button({
  variant = "plain",
  icon,
  isBusy = false,
  children,
  ...button
}: ButtonProps): ReactNode {
  const square = children === undefined ? "w-8 px-0" : "px-3";
  return (
    <button
      type="button"
      {...button}
      disabled={isBusy || button.disabled}
      className={`inline-flex h-8 shrink-0 items-center justify-center gap-1.5 rounded-md border text-sm font-medium whitespace-nowrap transition-colors disabled:opacity-50 ${square} ${variants[variant]}`}
    >
      {icon === undefined ? null : <Icon name={icon} />}
      {children}
    </button>
  );
}
