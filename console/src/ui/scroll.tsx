import type { ReactNode, Ref } from "react";

interface ScrollProps {
  readonly label: string;
  readonly className: string;
  readonly ref?: Ref<HTMLElement>;
  readonly children: ReactNode;
}

/** A part that scrolls by itself, which the keyboard reaches. */
export function Scroll({ label, className, ref, children }: ScrollProps): ReactNode {
  return (
    <section ref={ref} aria-label={label} tabIndex={0} className={`overflow-auto ${className}`}>
      {children}
    </section>
  );
}
