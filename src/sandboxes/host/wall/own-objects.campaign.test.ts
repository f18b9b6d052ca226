import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { expect } from "vitest";
import { openRepository } from "./repository.suite.ts";
import { createFolder, openWalled, wallTest } from "./walled.suite.ts";

const folder = await createFolder();
const access = { write: true };
const env = {
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@b.c",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a@b.c",
};

/** The name and the file of a loose object. */
function toObject(text: string, head = `blob ${text.length}\0`): { path: string; bytes: Buffer } {
  const content = Buffer.from(head + text);
  const name = createHash("sha1").update(content).digest("hex");
  return { path: `${name.slice(0, 2)}/${name.slice(2)}`, bytes: deflateSync(content) };
}

wallTest(
  "a command cannot change an object of the repository, in a file of its own or in a pack",
  async () => {
    for (const isPacked of [false, true]) {
      const { run, git, root } = await openRepository(folder);
      const { path } = toObject("a\n");
      if (isPacked) git("gc", "--quiet");
      await writeFile(join(root, "forged"), toObject("forged\n").bytes);
      const { stdout, stderr } = await run(
        `{ mkdir -p .git/objects/${path.slice(0, 2)}; chmod u+w .git/objects/${path} .git/kit-objects/${path}
      for each in .git/objects .git/kit-objects; do rm -f $each/${path}; cp forged $each/${path}; done
      rm -f .git/kit-objects/pack/*; rm a.txt; git checkout -- a.txt; } 2>/dev/null; cat a.txt`,
        { access },
      );
      // Git looks into packs first.
      expect([stdout, stderr.trim()]).toEqual(
        isPacked ? ["a\n", expect.stringContaining(`: objects/${path} is damaged`)] : ["forged\n", ""],
      );
      git("checkout", "--", "a.txt");
      expect(await readFile(join(root, "a.txt"), "utf8")).toBe("a\n");
      expect(git("cat-file", "-p", "HEAD:a.txt")).toBe("a\n");
      git("fsck", "--strict");
    }
  },
);

wallTest("an object that Git would not read under its name is left, with what names it", async () => {
  const { path, bytes } = toObject("good\n");
  const bomb = Buffer.alloc(50 * 1024 * 1024);
  const other = toObject("other");
  const cases: Readonly<Record<string, readonly [path: string, bytes: Buffer]>> = {
    "another content": [path, other.bytes],
    "no content": [path, Buffer.alloc(0)],
    "more after it": [path, Buffer.concat([bytes, Buffer.from("more")])],
    "a cut content": [path, bytes.subarray(0, -6)],
    "another length": [toObject("good\n", "blob 4\0").path, toObject("good\n", "blob 4\0").bytes],
    "another kind": [toObject("good\n", "bomb 5\0").path, toObject("good\n", "bomb 5\0").bytes],
    "much more than it says": [path, deflateSync(Buffer.concat([Buffer.from("blob 5\0"), bomb]))],
  };
  const { run, git, root } = await openRepository(folder);
  for (const [name, [place, content]] of Object.entries(cases)) {
    await writeFile(join(root, "object"), content);
    const { stderr } = await run(
      `mkdir -p .git/objects/${place.slice(0, 2)}; cp object .git/objects/${place}; git commit -q --allow-empty -m second`,
      { access, env },
    );
    expect([name, stderr]).toEqual([name, expect.stringContaining(`: objects/${place} is damaged`)]);
    expect([name, stderr.trim().split("\n").length]).toEqual([name, 1]);
    expect([name, existsSync(join(root, ".git/objects", place))]).toEqual([name, false]);
    expect(git("log", "--format=%s")).toBe("first\n");
  }
  const { stderr } = await run("git commit -q --allow-empty -m third", { access, env });
  expect([stderr, git("log", "--format=%s")]).toEqual(["", "third\nfirst\n"]);
  git("fsck", "--strict");
});

wallTest("kit follows no link that a command puts in the place of objects", async () => {
  const { run, git, root } = await openRepository(folder);
  const { path, bytes } = toObject("secret\n");
  const outside = join(folder, "outside");
  await mkdir(join(outside, path.slice(0, 2)), { recursive: true });
  await writeFile(join(outside, path), bytes);
  const [fan = "", rest = ""] = path.split("/");
  const pack = `pack/pack-${"a".repeat(40)}.pack`;
  for (const [left, command] of Object.entries({
    [`/${path}`]: `mkdir .git/objects/${fan}; ln -s ${outside}/${path} .git/objects/${path}`,
    [`/${fan}`]: `ln -s ${outside}/${fan} .git/objects/${fan}`,
    [`/${pack}`]: `mkdir .git/objects/pack; ln -s /etc/passwd .git/objects/${pack}`,
    "/pack": `ln -s ${outside} .git/objects/pack`,
    "": `rm -r .git/objects; ln -s ${outside} .git/objects`,
  })) {
    const { stderr } = await run(command, { access });
    expect(stderr).toContain(`were not taken over: objects${left} is damaged`);
    expect([command, existsSync(join(root, ".git/objects", path))]).toEqual([command, false]);
  }
  expect(await readdir(join(outside, fan))).toEqual([rest]);
  expect((await run("git status --short", { access })).stdout).toBe("");
  git("fsck", "--strict");
});

wallTest(
  "a pack is taken over with the names that its contents have, and a damaged one is left",
  async () => {
    const { run, git, root } = await openRepository(folder);
    const inPacks = "git repack -q -l -d; (cd .git/objects/pack";
    const forged = `echo forged > b.txt; git add b.txt; git commit -q -m second; ${inPacks}`;
    const names = `$(printf 'a\\n' | git hash-object --stdin) $(printf 'forged\\n' | git hash-object --stdin)`;
    await writeFile(
      join(root, "rename.py"),
      `import glob, hashlib, os, sys
old, new = [bytes.fromhex(each) for each in (sys.argv[2], sys.argv[1])]
file = glob.glob("*.idx")[0]
data = bytearray(open(file, "rb").read())
count = int.from_bytes(data[1028:1032], "big")
names = [bytes(data[1032 + 20 * i:1052 + 20 * i]) for i in range(count)]
order = sorted(range(count), key=lambda i: new if names[i] == old else names[i])
tables = [(1032, 20), (1032 + 20 * count, 4), (1032 + 24 * count, 4)]
entries = [[bytes(data[start + size * i:start + size * (i + 1)]) for start, size in tables] for i in order]
for entry in entries: entry[0] = new if entry[0] == old else entry[0]
for position, (start, size) in enumerate(tables):
    for row, entry in enumerate(entries): data[start + size * row:start + size * (row + 1)] = entry[position]
for byte in range(256):
    data[8 + 4 * byte:12 + 4 * byte] = sum(entry[0][0] <= byte for entry in entries).to_bytes(4, "big")
data[-20:] = hashlib.sha1(data[:-20]).digest()
os.chmod(file, 0o644)
open(file, "wb").write(data)
`,
    );
    const { stdout, stderr } = await run(
      `${forged}; python3 ../../../rename.py ${names}; touch $(basename *.pack .pack).keep); git cat-file blob HEAD~1:a.txt`,
      { access, env },
    );
    expect([stdout, stderr]).toEqual(["forged\n", ""]);
    expect([git("cat-file", "blob", "HEAD:a.txt"), git("cat-file", "blob", "HEAD:b.txt")]).toEqual([
      "a\n",
      "forged\n",
    ]);
    const packs = await readdir(join(root, ".git/objects/pack"));
    expect(packs.map((name) => name.replace(/^pack-[0-9a-f]{40}/, "")).sort()).toEqual([".idx", ".pack"]);
    git("fsck", "--strict");
    const damaged = await run(
      `echo c > c.txt; git add c.txt; git commit -q -m third; ${inPacks}; chmod u+w *.pack; printf x | dd of=$(echo *.pack) bs=1 seek=30 conv=notrunc 2>/dev/null)`,
      { access, env },
    );
    expect(damaged.stderr).toMatch(
      /^The changes of the repository .* objects\/pack\/pack-\w+\.pack is damaged.*\n?$/,
    );
    expect(await readdir(join(root, ".git/objects/pack"))).toEqual(packs);
    expect(git("log", "--format=%s", "-1")).toBe("second\n");
  },
);

wallTest(
  "commits, stashes, rebases, fetches and packs of a command are the repository's afterwards",
  async () => {
    const { run, git, root } = await openRepository(folder);
    git("clone", "--quiet", "--no-local", ".", "elsewhere");
    for (let count = 0; count < 120; count += 1) {
      git("-C", "elsewhere", "commit", "--quiet", "--allow-empty", `--message=${count}`);
    }
    const script = async (text: string): Promise<void> => {
      const { stdout, stderr, exit_code } = await run(`set -e\n${text}`, { access, env });
      expect({ text, stdout, stderr, exit_code }).toEqual({ text, stdout: "", stderr: "", exit_code: 0 });
      git("fsck", "--strict");
    };
    await script("echo b > b.txt; git add b.txt; git commit -q -m second; git branch topic");
    await script("head -c 3000000 /dev/urandom > large; git add large; git stash -q; git stash pop -q");
    await script("git commit -q -m large; git checkout -q topic; echo t > t.txt; git add t.txt");
    await script("git commit -q -m topic; git rebase -q main; git gc -q; git repack -q; git prune");
    await script("git fetch -q ./elsewhere main:fetched; git repack -q -a -d");
    await script("git clone -q --no-hardlinks . /tmp/clone; git -C /tmp/clone fsck 2>/dev/null >&2");
    expect(git("log", "--format=%s")).toBe("topic\nlarge\nsecond\nfirst\n");
    expect(git("rev-list", "--count", "fetched").trim()).toBe("121");
    expect(await readdir(join(root, ".git"))).not.toContain("kit-objects");
    git("gc", "--quiet", "--prune=now");
    git("fsck", "--strict");
  },
);

wallTest("a command finds the objects that the repository borrows by a relative path", async () => {
  const { git, root } = await openRepository(folder);
  git("clone", "--quiet", "--shared", ".", "borrower");
  git("clone", "--quiet", "--bare", "--no-local", ".", "borrower/lender.git");
  await writeFile(join(root, "borrower/.git/objects/info/alternates"), "../../lender.git/objects\n");
  const borrower = await openWalled(folder, { root: join(root, "borrower") });
  const { stdout, stderr } = await borrower.run(
    "git log --format=%s; git commit -q --allow-empty -m second; git fsck",
    { access, env },
  );
  expect([stdout, stderr.replace(/^(?:notice|Checking).*\n/gm, "")]).toEqual(["first\n", ""]);
  expect(git("-C", "borrower", "log", "--format=%s")).toBe("second\nfirst\n");
  git("-C", "borrower", "fsck", "--strict");
  await rm(join(root, "borrower"), { recursive: true });
});

wallTest("commits in a linked worktree, and in a repository with longer names, are taken over", async () => {
  const { git, root } = await openRepository(folder);
  const linked = `${root}-linked`;
  git("worktree", "add", "--quiet", "-b", "topic", linked);
  const longer = `${root}-longer`;
  git("init", "--quiet", "--object-format=sha256", "--initial-branch=topic", longer);
  for (const place of [linked, longer]) {
    const { run } = await openWalled(folder, { root: place });
    const { stderr } = await run(
      "echo b > b.txt; git add b.txt; git commit -q -m second; git checkout -q --detach; git commit -q --allow-empty -m third; git repack -q",
      { access, env },
    );
    expect(stderr).toBe("");
    expect(git("-C", place, "log", "--format=%s", "-2")).toBe("third\nsecond\n");
    expect(git("-C", place, "status", "--short")).toBe("");
    git("-C", place, "fsck", "--strict");
  }
});

wallTest(
  "commits of commands at the same time arrive whole when their command ends, and not before",
  async () => {
    const { run, git, root } = await openRepository(folder);
    const count = git("count-objects");
    const running = run(
      "git commit -q --allow-empty -m second; touch ready; until [ -e done ]; do sleep 0.02; done; git commit -q --allow-empty -m fourth",
      { access, env },
    );
    while (!existsSync(join(root, "ready"))) await new Promise((next) => setTimeout(next, 20));
    expect([git("count-objects"), git("log", "--format=%s")]).toEqual([count, "first\n"]);
    await run("git commit -q --allow-empty -m third", { access, env });
    expect(git("log", "--format=%s")).toBe("third\nsecond\nfirst\n");
    git("fsck", "--strict");
    await writeFile(join(root, "done"), "");
    expect((await running).stderr).toBe("");
    expect(git("log", "--format=%s")).toBe("fourth\nthird\nsecond\nfirst\n");
    git("fsck", "--strict");
  },
);
