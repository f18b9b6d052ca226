import type { IsolationMode } from "../../sandboxes/contract.ts";

export const vendorKinds = ["daytona", "e2b", "modal", "runloop"] as const;
export type VendorKind = (typeof vendorKinds)[number];

/** The sandboxes that the configuration can name. */
export const sandboxKinds = ["virtual", "local", ...vendorKinds] as const;
export type SandboxKind = (typeof sandboxKinds)[number];

export const isolationModes = ["required", "auto", "off"] as const satisfies readonly IsolationMode[];

export const isVendorKind = (kind: string): kind is VendorKind =>
  vendorKinds.some((vendor) => vendor === kind);
