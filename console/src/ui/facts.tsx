import type { ReactNode } from "react";

/** Names with values, such as a record's; names without a value are left out. */
export function Facts({ facts }: { readonly facts: Readonly<Record<string, ReactNode>> }): ReactNode {
  return (
    <dl className="grid grid-cols-[minmax(6rem,auto)_1fr] gap-x-6 gap-y-1.5 p-4 text-sm">
      {Object.entries(facts).map(([name, value]) =>
        value === undefined || value === null ? null : (
          <div key={name} className="contents">
            <dt className="text-soft">{name}</dt>
            <dd className="min-w-0 foreign">{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}
