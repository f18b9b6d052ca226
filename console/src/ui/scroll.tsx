import type { ReactNode, Ref } from "react";

interface ScrollProps {
  readonly label: string;
  readonly className: string;
  readonly ref?: Ref<HTMLElement>;
  readonly children: ReactNode;
}

/** A scrolling part that the keyboard can reach. */
export function Scroll({ label, className, ref, children }: ScrollProps): ReactNode {
  return (
    <section ref={ref} aria-label={label} tabIndex={0} className={`overflow-auto ${className}`}>
      {children}
    </section>
  );
}
