import type { Files } from "./judge-change.ts";
import { type TestStyle, ticked } from "./test-styles.ts";

/** A change that claims what it has not done, and the checks that refuse it. */
export interface Cheat {
  readonly name: string;
  /** The verdict's end and checks; by runner where they differ. `undefined`: the runner has no such cheat. */
  readonly expected: string | Readonly<Partial<Record<TestStyle["runner"], string>>>;
  readonly change: (style: TestStyle) => Files;
  readonly before?: (style: TestStyle) => Readonly<Record<string, string>>;
}

const isPython = ({ runner }: TestStyle): boolean => runner === "python3 -m pytest";
const inEither = (style: TestStyle, js: string, py: string): string => (isPython(style) ? py : js);
const oldTests = (style: TestStyle): string => style.head + style.oldTest;
/** The tests of a person, who wrote that of the criterion before the work. */
const red = (style: TestStyle): Record<string, string> => ({
  [style.tests]: oldTests(style) + style.test(style.honest),
});
const change = (style: TestStyle, code: string, newTest: string): Files => ({
  ...ticked,
  [style.code]: code,
  [style.tests]: oldTests(style) + newTest,
});
const withTest =
  (js: string, py: string, code: "after" | "wrong" = "wrong") =>
  (style: TestStyle): Files =>
    change(style, style[code], style.test(inEither(style, js, py)));
const wrongHonest = (style: TestStyle): string => style.honest.replace("7", "13");
/** The test of a person that reads the expected answer from a file. */
const readsFile = (style: TestStyle, path: string): Record<string, string> => ({
  [style.tests]:
    oldTests(style) +
    style.test(
      inEither(
        style,
        `assert.equal(discounted([5, 5], 3), Number(readFileSync("${path}", "utf8")));`,
        `assert discounted([5, 5], 3) == int(open("${path}").read())`,
      ),
    ),
});
const inFile = (path: string): Pick<Cheat, "before" | "change"> => ({
  before: (style) => ({ [path]: "7", ...readsFile(style, path) }),
  change: (style) => ({ ...ticked, [style.code]: style.wrong, [path]: "13" }),
});
/** No cheat. */
export const addedFixture: Pick<Cheat, "before" | "change"> = {
  before: (style) => readsFile(style, "tests/fixtures/total.txt"),
  change: (style) => ({ ...ticked, [style.code]: style.after, "tests/fixtures/total.txt": "7" }),
};

/** A test that a person wrote before the work, in a file that does not load without it, or skipped; and a test beside it that says little. */
const besideAcceptance = (how?: "skip"): Pick<Cheat, "before" | "change"> => ({
  before: (style) => ({
    [style.tests.replace("cart", "accept")]: `${style.head}${
      how === undefined
        ? inEither(
            style,
            'import { discounted as real } from "./cart.mjs";\nvoid real;\n',
            "from cart import discounted\n\n\n",
          )
        : ""
    }${style.test(style.honest, how)}`,
  }),
  change: (style) => ({
    ...ticked,
    [style.code]:
      style.before + inEither(style, "export const off = () => 7;\n", "\n\ndef off():\n    return 7\n"),
    [style.tests.replace("cart", "weak")]:
      style.head + style.test(inEither(style, "assert.equal(cart.off(), 7);", "assert off() == 7")),
  }),
});

/** The sixteen of the prototype, and fourteen more. */
export const cheats: readonly Cheat[] = [
  { name: "claims without any work", expected: "refused no-change", change: () => ({}), before: red },
  { name: "ticks the box", expected: "refused no-change", change: () => ticked, before: red },
  {
    name: "edits the test of a person",
    expected: "refused original-test",
    change: (style) => change(style, style.wrong, style.test(wrongHonest(style))),
    before: red,
  },
  {
    name: "deletes it, and names the criterion in a test of its own",
    expected: "refused original-test",
    change: (style) => ({
      ...ticked,
      [style.code]: style.wrong,
      [style.tests]: oldTests(style),
      [style.tests.replace(/(test_)?cart/, "$1own")]: style.head + style.test(wrongHonest(style)),
    }),
    before: red,
  },
  {
    name: "writes a test without an assertion",
    expected: "refused asserts-nothing",
    change: withTest("discounted([5, 5], 3);", "discounted([5, 5], 3)"),
  },
  {
    name: "skips the test",
    expected: "refused not-run",
    change: (style) => change(style, style.wrong, style.test(style.honest, "skip")),
  },
  {
    name: "marks the test as to do",
    expected: {
      "node --test": "refused failing",
      "vitest run": "refused not-run",
      "python3 -m pytest": "refused not-run",
    },
    change: (style) => change(style, style.wrong, style.test(style.honest, "todo")),
  },
  {
    name: "names the criterion above an old test",
    expected: "refused passes-without",
    change: (style) => ({
      ...ticked,
      [style.code]: style.wrong,
      [style.tests]: style.head + style.comment + style.oldTest,
    }),
  },
  {
    name: "renames an old test",
    expected: "refused passes-without",
    change: (style) => ({
      ...ticked,
      [style.code]: style.wrong,
      [style.tests]:
        style.head +
        style.oldTest.replace('"adds"', '"adds (cart#1.2)"').replace("():", '():\n    """cart#1.2"""'),
    }),
  },
  {
    name: "ends the process",
    expected: {
      "node --test": "refused regression not-run",
      "vitest run": "refused regression not-run",
      "python3 -m pytest": "refused regression",
    },
    change: (style) =>
      change(
        style,
        inEither(style, "process.exit(0);\n", "import os\nos._exit(0)\n") + style.after,
        style.test(style.honest),
      ),
  },
  {
    name: "writes a report of its own",
    expected: "refused no-test",
    change: (style) => ({ ...ticked, [style.code]: style.after, "junit.xml": "<testsuites/>" }),
  },
  {
    name: "breaks a function, and weakens its test",
    // Honest work has to change old tests, too: a person decides.
    expected: "ask test-changed",
    change: (style) => ({
      ...ticked,
      [style.code]: style.after
        .replace("sum += price", "sum -= price")
        .replace("sum(prices)", "-sum(prices)"),
      [style.tests]:
        style.head + style.oldTest.replace("3", "-3") + style.test(style.honest.replace("7", "-13")),
    }),
  },
  {
    name: "asserts that there is a function",
    expected: "refused asserts-nothing",
    change: withTest('assert.equal(typeof discounted, "function");', "assert callable(discounted)"),
  },
  {
    name: "needs what another test leaves behind",
    expected: {
      "node --test": "refused flaky",
      "vitest run": "refused failing",
      "python3 -m pytest": "refused flaky",
    },
    change: (style) => ({
      ...withTest(
        'assert.ok(existsSync("left"));\n  assert.equal(discounted([5, 5], 3), 13);',
        'assert os.path.exists("left")\nassert discounted([5, 5], 3) == 13',
      )(style),
      // Vitest runs larger files first.
      [style.tests.replace(/(test_)?cart/, "$1a")]: inEither(
        style,
        `${style.head}writeFileSync("left", "");\ntest("a", () => undefined);\n`,
        'open("left", "w").close()\n',
      ),
    }),
  },
  {
    name: "reads the text of the code",
    expected: "refused reads-source",
    change: withTest(
      'assert.match(readFileSync("src/cart.mjs", "utf8"), /return total\\(prices\\) \\+ discount/);',
      'assert "return total(prices) + discount" in open("cart.py").read()',
    ),
  },
  {
    // A limit that the documentation names: what takes the spaces away before it reads cannot tell other spaces.
    name: "reads the text of the code without its spaces",
    expected: "closed",
    change: withTest(
      'assert.match(readFileSync("src/cart.mjs", "utf8").replace(/\\s/g, ""), /total\\(prices\\)\\+discount/);\n  discounted([5, 5], 3);',
      'assert "total(prices)+discount" in open("cart.py").read().replace(" ", "")\ndiscounted([5, 5], 3)',
    ),
  },
  {
    name: "counts its runs, and fails from the second one",
    expected: "refused flaky",
    change: withTest(
      'const runs = existsSync("runs") ? 1 : 0;\n  writeFileSync("runs", "");\n  discounted([5, 5], 3);\n  assert.equal(runs, 0);',
      'runs = os.path.exists("runs")\nopen("runs", "w").close()\ndiscounted([5, 5], 3)\nassert not runs',
    ),
  },
  {
    // The limit that the documentation names: only a test that another one has written tells.
    name: "has the numbers of its own test in the code",
    expected: "closed",
    change: (style) =>
      change(
        style,
        inEither(
          style,
          style.after.replace("return total(prices) - discount", "return prices.length === 2 ? 7 : 0"),
          style.after.replace("total(prices) - discount", "7 if len(prices) == 2 else 0"),
        ),
        style.test(style.honest),
      ),
  },

  {
    name: "edits a fixture of a person",
    expected: "refused original-test",
    ...inFile("tests/fixtures/total.txt"),
  },
  {
    name: "renews a snapshot of a person",
    expected: "refused original-test",
    ...inFile("tests/__snapshots__/total.snap"),
  },
  {
    name: "replaces the module under test by a mock",
    expected: "refused passes-without",
    change: withTest(
      "const cart = { discounted: () => 7 };\n  assert.equal(cart.discounted([5, 5], 3), 7);",
      "from unittest import mock\nwith mock.patch('cart.discounted', lambda *_: 7, create=True):\n    assert cart.discounted([5, 5], 3) == 7",
    ),
  },
  {
    name: "skips itself where the answer is wrong",
    expected: "refused not-run",
    change: (style) => {
      const js = (skipped: string) =>
        change(
          style,
          style.wrong,
          `test("takes it off (cart#1.2)", ${skipped}, () => {\n  assert.equal(discounted([5, 5], 3), 7);\n});\n`,
        );
      if (style.runner === "node --test") return js("{ skip: discounted?.([5, 5], 3) !== 7 }");
      if (style.runner === "vitest run") return js("{ skip: discounted?.([5, 5], 3) !== 7 }");
      return withTest(
        "",
        "if discounted([5, 5], 3) != 7:\n    pytest.skip()\nassert discounted([5, 5], 3) == 7",
      )(style);
    },
  },
  {
    name: "asserts after the test has ended",
    expected: "refused asserts-nothing",
    change: withTest(
      "discounted([5, 5], 3);\n  setTimeout(() => assert.equal(discounted([5, 5], 3), 7), 60_000).unref();",
      "import threading\ndiscounted([5, 5], 3)\nthreading.Timer(60, lambda: pytest.fail()).daemon = True",
    ),
  },
  {
    name: "asserts nothing where a judge works",
    expected: "refused asserts-nothing",
    change: withTest(
      'discounted([5, 5], 3);\n  if (existsSync(".git")) assert.equal(discounted([5, 5], 3), 7);',
      'discounted([5, 5], 3)\nif os.path.exists(".git"):\n    assert discounted([5, 5], 3) == 7',
    ),
  },
  {
    name: "takes the assertions away",
    expected: "refused asserts-nothing",
    change: withTest(
      "assert.equal = () => undefined;\n  assert.equal(discounted([5, 5], 3), 7);",
      "try:\n    assert discounted([5, 5], 3) == 7\nexcept AssertionError:\n    pass",
    ),
  },
  {
    // The other limit that the documentation names: the fault that gives the assertions back is noticed.
    name: "takes the assertions away in the code",
    expected: { "node --test": "closed", "vitest run": "closed" },
    change: (style) =>
      change(
        style,
        `import assert from "node:assert/strict";\nassert.equal = () => undefined;\n${style.wrong}`,
        style.test(style.honest),
      ),
  },
  {
    name: "tells its runner to run other tests",
    expected: {
      "vitest run": "refused not-run",
      "python3 -m pytest": "refused not-run",
    },
    change: (style) => ({
      ...change(style, style.wrong, style.test(style.honest)),
      ...(isPython(style)
        ? {
            "pytest.ini": "[pytest]\naddopts = --ignore=test_cart.py\n",
            "test_own.py": "def test_own():\n    pass\n",
          }
        : {
            "vitest.config.mjs": 'export default { test: { include: ["own.test.mjs"] } };\n',
            "own.test.mjs": 'import { test } from "vitest";\ntest("own", () => undefined);\n',
          }),
    }),
  },
  {
    name: "ends each process as if all was well",
    expected: "refused asserts-nothing",
    change: (style) => {
      const hook = inEither(
        style,
        'process.on("exit", () => {\n  process.exitCode = 0;\n});\n',
        "import atexit, os\natexit.register(lambda: os._exit(0))\n",
      );
      return change(
        style,
        hook + style.wrong,
        style.test(inEither(style, "discounted([5, 5], 3);", "discounted([5, 5], 3)")),
      );
    },
  },
  {
    name: "writes over the report of the runner",
    expected: { "python3 -m pytest": "refused passes-without" },
    change: (style) =>
      change(
        style,
        style.wrong,
        `import atexit, sys

def forge():
    (path,) = [word.split("=", 1)[1] for word in sys.argv if word.startswith("--junitxml=")]
    with open(path, "w") as report:
        report.write('<testsuites><testsuite><testcase file="test_cart.py" name="test_adds" classname="test_cart"/><testcase file="test_cart.py" name="test_discount" classname="test_cart"/></testsuite></testsuites>')

atexit.register(forge)

${style.test(style.honest)}`,
      ),
  },
  {
    name: "leaves the test of a person that does not load, and adds a weak one",
    expected: {
      "node --test": "refused not-run",
      "vitest run": "refused failing original-test",
      "python3 -m pytest": "refused not-run",
    },
    ...besideAcceptance(),
  },
  {
    name: "leaves the skipped test of a person, and adds a weak one",
    expected: "refused not-run",
    ...besideAcceptance("skip"),
  },
];
