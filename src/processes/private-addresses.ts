import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";

const loopback = toBlockList(["127.0.0.0/8", "::1/128"]);
/** Link-local addresses, and those where clouds keep the secrets of a machine. */
const metadata = toBlockList([
  "169.254.0.0/16",
  "168.63.129.16/32",
  "100.100.100.200/32",
  "fe80::/10",
  "fd00:ec2::254/128",
]);
/** This machine, its networks, and the metadata addresses of clouds. */
const privateAddresses = toBlockList([
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"],
  ...["192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3", "168.63.129.16/32"],
  ...["::/127", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"],
  // IPv4 inside IPv6: translated and tunnelled. BlockList checks mapped addresses as IPv4.
  ...["64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96", "::ffff:0:0:0/96"],
]);

/**
 * Returns a test whether an IP address is one of this machine, of a private network, or of the metadata of a cloud. It knows the
 * addresses that this machine has now, of which some may be public.
 */
export function createNearCheck(): (address: string) => boolean {
  const interfaces = Object.values(networkInterfaces()).flatMap((each = []) => each);
  const own = toBlockList(
    interfaces.map(({ address, family }) => `${address}/${family === "IPv6" ? 128 : 32}`),
  );
  return (address) => contains(privateAddresses, address) || contains(own, address);
}

/** Whether an IP address is one of the loopback interface. */
export function isLoopback(address: string): boolean {
  return contains(loopback, address);
}

/** Whether an IP address is link-local, or one of the metadata of a cloud. */
export function isMetadata(address: string): boolean {
  return contains(metadata, address);
}

function contains(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

function toBlockList(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", bits = ""] = range.split("/");
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return list;
}
