import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin, type UserConfig } from "vite";

/**
 * Moves the stylesheet below the frame of `index.html`, so that the browser draws the frame without it. The script still waits for it:
 * the page never shows without its styles.
 */
const drawFrameFirst: Plugin = {
  name: "draw-frame-first",
  transformIndexHtml: {
    order: "post",
    handler(html) {
      const sheets = html.match(/\s*<link rel="stylesheet"[^>]*>/g) ?? [];
      const without = sheets.reduce((page, sheet) => page.replace(sheet, ""), html);
      return without.replace("<noscript>", `${sheets.map((sheet) => sheet.trim()).join("")}\n    <noscript>`);
    },
  },
};

/** `scripts/build.ts` builds with it; `npm run dev -w console` serves the sources with a `kit dev` on port 2024 as the server. */
const config: UserConfig = defineConfig({
  root: import.meta.dirname,
  // Relative to the `<base>` that the server writes into the page, so that it works below any path.
  base: "./",
  plugins: [react(), tailwindcss(), drawFrameFirst],
  build: {
    outDir: "../dist/console",
    emptyOutDir: true,
    target: "es2023",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            // One file for what every visit needs: each further file costs a slow network another wait.
            { name: "page", tags: ["$initial"] },
            // And one file for what several screens share, except the large parts that few of them need.
            {
              name: "shared",
              test: /console\/src\/(?!ui\/markdown)|@tanstack/,
              minShareCount: 2,
              includeDependenciesRecursively: false,
            },
          ],
        },
      },
    },
  },
});

export default config;
