import { isIPv6 } from "node:net";

/**
 * Whom an address stands for: an IPv4 address for itself, an IPv6 address for its /64, such as
 * `2001:db8:0:1::/64`. A subscriber has at least that much (RFC 6177), and could otherwise come from another
 * address each time. Text that is no address stands for itself.
 */
export function networkOf(address: string): string {
  // A socket for both protocols sees IPv4 as `::ffff:203.0.113.7`.
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");
  if (!isIPv6(plain)) return plain;
  const [left = [], right = []] = plain.split("::").map((side) => side.split(":").filter(Boolean));
  // Its last two groups may be written as an IPv4 address.
  const written = left.length + right.length + (plain.includes(".") ? 1 : 0);
  const omitted = Array.from({ length: 8 - written }, () => "0");
  const groups = [...left, ...omitted, ...right].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
}
