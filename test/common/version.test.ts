// Without it two builds of one number could not be told apart.

import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { commitIn } from '../../src/common/version.ts'

const commit = '0123456789abcdef0123456789abcdef01234567'
const packed = `# pack-refs with: peeled fully-peeled sorted\n${'f'.repeat(40)} refs/heads/other/main\n${commit} refs/heads/main\n`

t.test('the commit of a folder', async t => {
  const rows: [name: string, files: Record<string, string>, commit: string | undefined][] = [
    ['none', {}, undefined],
    ['an image', { commit: `${commit}\n` }, '01234567'],
    ['an image of a build without its argument', { commit: '' }, undefined],
    ['an image of a checkout, whose file wins', { commit, '.git/HEAD': 'f'.repeat(40) }, '01234567'],
    ['no commit', { commit: 'main; rm -rf /' }, undefined],
    [
      'a branch',
      { '.git/HEAD': 'ref: refs/heads/main\n', '.git/refs/heads/main': `${commit}\n` },
      '01234567',
    ],
    ['a packed branch', { '.git/HEAD': 'ref: refs/heads/main\n', '.git/packed-refs': packed }, '01234567'],
    [
      'a branch without a commit',
      { '.git/HEAD': 'ref: refs/heads/new\n', '.git/packed-refs': packed },
      undefined,
    ],
    ['a detached head', { '.git/HEAD': `${commit}\n` }, '01234567'],
    [
      'a worktree',
      {
        '.git': 'gitdir: main/worktrees/two\n',
        'main/worktrees/two/HEAD': 'ref: refs/heads/two\n',
        'main/worktrees/two/commondir': '../..\n',
        'main/refs/heads/two': commit,
      },
      '01234567',
    ],
    ['a gitdir that is gone', { '.git': 'gitdir: /nowhere\n' }, undefined],
  ]
  for (const [name, files, expected] of rows) {
    const folder = t.testdir()
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(join(folder, file, '..'), { recursive: true })
      writeFileSync(join(folder, file), text)
    }
    t.equal(commitIn(folder), expected, name)
  }
})

t.test('of this checkout it is what git says', async t => {
  const root = join(import.meta.dirname, '../..')
  const git = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' })
  if (git.status === 0) t.equal(commitIn(root), git.stdout.slice(0, 8))
})
