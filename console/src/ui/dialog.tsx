import { type ReactNode, useEffect, useId, useRef } from "react";

const layouts = {
  center:
    "m-auto max-h-[90dvh] w-[min(36rem,calc(100vw-2rem))] flex-col gap-3 overflow-y-auto rounded-xl border p-4 shadow-xl open:flex",
  top: "mx-auto mt-[12dvh] max-h-[76dvh] w-[min(36rem,calc(100vw-2rem))] flex-col overflow-hidden rounded-xl border shadow-xl open:flex",
  left: "m-0 h-dvh max-h-none w-64 border-r open:flex",
} as const;

interface DialogProps {
  readonly title: string;
  /** `left`: a drawer; `top`: a field whose results grow downwards. */
  readonly place?: keyof typeof layouts;
  /** The title is there for screen readers only. */
  readonly hidesTitle?: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/**
 * A modal window, open while it is rendered. The browser keeps the focus inside and gives it back; Escape and a click beside the
 * window close it.
 */
export function Dialog({
  title,
  place = "center",
  hidesTitle = false,
  onClose,
  children,
}: DialogProps): ReactNode {
  const box = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = box.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard closes it by Escape.
    <dialog
      ref={box}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === event.currentTarget && isOutside(event)) onClose();
      }}
      className={`border-line bg-panel text-ink backdrop:bg-black/40 ${layouts[place]}`}
    >
      <h2 id={heading} className={hidesTitle ? "sr-only" : "font-semibold text-base"}>
        {title}
      </h2>
      {children}
    </dialog>
  );
}

/** Whether a click on the window's element is on its backdrop, not on its padding. */
function isOutside({
  currentTarget,
  clientX,
  clientY,
}: {
  readonly currentTarget: HTMLElement;
  readonly clientX: number;
  readonly clientY: number;
}): boolean {
  const { left, right, top, bottom } = currentTarget.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}
