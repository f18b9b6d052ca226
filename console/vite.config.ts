import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type UserConfig } from "vite";

/** `scripts/build.ts` builds with it; `npm run dev -w console` serves the sources with a `kit dev` on port 2024 as the server. */
const config: UserConfig = defineConfig({
  root: import.meta.dirname,
  // Relative to the `<base>` that the server writes into the page, so that it works below any path.
  base: "./",
  plugins: [react(), tailwindcss()],
  build: {
    outDir: "../dist/console",
    emptyOutDir: true,
    target: "es2023",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});

export default config;
