import { type ReactNode, useState } from "react";
import { Icon } from "./icons.tsx";

interface CopyButtonProps {
  /** Returns the text when the button is pressed. */
  readonly textOf: () => string;
  readonly label?: string;
  readonly title?: string;
}

/** A small button that copies a text, and says so. */
export function CopyButton({ textOf, label = "Copy", title }: CopyButtonProps): ReactNode {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard?.writeText(textOf());
    setCopied(true);
    setTimeout(() => setCopied(false), 2_000);
  };
  return (
    <button
      type="button"
      title={title}
      onClick={() => void copy()}
      className="inline-flex h-6 items-center gap-1 rounded px-1.5 text-soft text-xs hover:bg-raised hover:text-ink"
    >
      <Icon name={isCopied ? "check" : "copy"} size={12} />
      {isCopied ? "Copied" : label}
    </button>
  );
}
