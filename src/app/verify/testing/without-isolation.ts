// NODE_OPTIONS takes double quotes for its own.
const code = "Object.defineProperty(process, 'platform', { value: 'freebsd' })";

/** Variables for a process of Node that takes its system for one on which kit cannot isolate commands. */
export const withoutIsolation: Readonly<Record<string, string>> = {
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}`,
};
