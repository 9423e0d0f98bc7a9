// Without this, an old or missing Node would fail with messages about its options or about .ts files.

import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { cleanEnv, product } from '../support/process.ts'

const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } }
const needed = Number(/^>=(\d+)$/.exec(engines.node)?.[1])
const failed = /^abohawa needs Node \d+ or later; [^\n]+\.\n$/

/** A fake Node with a version that prints its arguments. */
const fakeNode = (version: string): string =>
  `#!/bin/sh\nif [ "$1" = --version ]; then echo ${version}; else echo "started: $*"; fi\n`

type Installed = { onPath?: string; pinned?: string }

/** Starts a copy of the product's command that finds only these Nodes. */
const start = (t: Test, { onPath, pinned }: Installed) => {
  const home = t.testdir({
    bin: {},
    path: { ...(onPath && { node: onPath }) },
    node_modules: { '.bin': { ...(pinned && { node: pinned }) } },
  })
  for (const node of [`${home}/path/node`, `${home}/node_modules/.bin/node`])
    if (existsSync(node)) chmodSync(node, 0o755)
  copyFileSync(product, `${home}/bin/abohawa`)
  const tools = ['readlink', 'mkdir']
  for (const tool of tools)
    t.equal(spawnSync('sh', ['-c', `ln -s "$(command -v ${tool})" ${home}/path/`]).status, 0)
  const { status, stdout, stderr } = spawnSync('/bin/sh', [`${home}/bin/abohawa`, 'serve'], {
    env: { ...cleanEnv(), PATH: `${home}/path` },
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

t.test('a Node that is too old is named, with where it was found and what is needed', async t => {
  for (const version of ['v20.19.0', `v${needed - 1}.11.1`]) {
    const { status, stdout, stderr } = start(t, { onPath: fakeNode(version) })
    t.strictSame([status, stdout], [1, ''])
    for (const said of [failed, `needs Node ${needed} or later`, version.slice(1), /\/path\/node /])
      t.match(stderr, said)
  }
})

t.test('so is one that does not print its version, and none at all', async t => {
  for (const onPath of ['#!/bin/sh\n', '#!/bin/sh\necho "v26 \x1b[2J"\n', '#!/bin/sh\nexit 3\n', undefined]) {
    const { status, stdout, stderr } = start(t, onPath === undefined ? {} : { onPath })
    t.strictSame([status, stdout], [1, ''])
    t.match(stderr, failed)
    t.notMatch(stderr, '\x1b')
  }
})

t.test('a Node that is new enough is started', async t => {
  for (const version of [`v${needed}.0.0`, `v${needed + 2}.1.0`, `v${needed}.0.0-rc.1`]) {
    const { status, stdout, stderr } = start(t, { onPath: fakeNode(version) })
    t.strictSame([status, stderr], [0, ''])
    t.match(stdout, /^started: .*src\/main\.ts serve\n$/)
  }
})

t.test('the pinned Node goes first, and its version is not checked', async t => {
  const pinned = '#!/bin/sh\n[ "$1" != --version ] || echo asked >&2\necho pinned\n'
  const found = start(t, { pinned, onPath: fakeNode('v20.19.0') })
  t.strictSame(found, { status: 0, stdout: 'pinned\n', stderr: '' })
})
