// The completion scripts in the shells themselves: bash completes real command lines; the others at least parse what they get.

import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { cleanEnv, runCommand } from '../support/process.ts'

const folder = t.testdir({ 'gateway.yaml': '', 'other.txt': '' })
const scripts: Record<string, string> = {}
for (const shell of ['bash', 'zsh', 'fish']) {
  const { code, stdout, stderr } = await runCommand(['completion', shell])
  t.match({ code, stderr }, { code: 0, stderr: '' })
  scripts[shell] = join(folder, `completion.${shell}`)
  writeFileSync(scripts[shell], stdout)
}

/** What bash offers for a command line whose last word is being typed. */
const offered = (...words: string[]): string[] =>
  execFileSync(
    'bash',
    [
      '--norc',
      '-c',
      `source "$0" || exit 1
[[ $(complete -p abohawa) == 'complete -F _abohawa abohawa' ]] || exit 2
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
_abohawa && printf '%s\\n' "\${COMPREPLY[@]}"`,
      scripts.bash ?? '',
      ...words,
    ],
    { encoding: 'utf8', cwd: folder, env: cleanEnv() },
  )
    .split('\n')
    .filter(Boolean)
    .sort()

t.test('bash completes commands, their options, and the words and files of both', t => {
  const all = offered('abohawa', '')
  for (const name of [
    'serve',
    'keys',
    'cache',
    'budget',
    'doctor',
    'saturate',
    'completion',
    '--version',
    '--help',
  ])
    t.ok(all.includes(name), name)
  t.strictSame(offered('abohawa', 'bu'), ['budget'])
  t.strictSame(offered('bin/abohawa', 'budget', 're'), ['reopen'])
  t.strictSame(offered('abohawa', 'budget', ''), ['--help', '-h', 'reopen', 'show'])
  t.strictSame(offered('abohawa', 'cache', 'purge', 'all', '--ha'), ['--hard'])
  t.strictSame(offered('abohawa', 'cache', 'purge', 'd'), ['district/', 'division/'])
  t.strictSame(offered('abohawa', 'cache', 'show', '--json', 'up'), ['upazila/'])
  t.strictSame(offered('abohawa', 'cache', 'refresh', 'di'), ['district/', 'division/'])
  t.strictSame(offered('abohawa', 'keys', 'create', '--tier', ''), [
    'business',
    'enterprise',
    'free',
    'starter',
  ])
  t.strictSame(offered('abohawa', 'keys', 'tier', 'key_1', 's'), ['starter'])
  t.strictSame(offered('abohawa', 'store', 'migrate', '--to-mode', 'c'), ['cluster'])
  t.strictSame(offered('abohawa', 'completion', ''), [
    '--config',
    '--help',
    '--json',
    '-c',
    '-h',
    'bash',
    'fish',
    'zsh',
  ])
  t.strictSame(offered('abohawa', 'serve', '--config', 'g'), ['gateway.yaml'])
  t.strictSame(offered('abohawa', 'replay', '--requests', 'o'), ['other.txt'])
  t.strictSame(offered('abohawa', 'saturate', 'o'), ['other.txt'])
  t.strictSame(offered('abohawa', 'config', 'check', 'g'), ['gateway.yaml'])
  t.strictSame(offered('abohawa', 'config', 'explain', 'g'), [], 'a setting, and no file')
  t.strictSame(offered('abohawa', 'config', 'explain', 'cache.freshF'), [
    'cache.freshFor',
    'cache.freshForAtMost',
  ])
  t.ok(offered('abohawa', 'config', 'explain', 'cache').includes('cache'), 'a section too')
  t.strictSame(offered('abohawa', '-x', 'serve', '-c', 'o'), ['other.txt'])
  t.strictSame(offered('abohawa', 'keys', 'create', '--subscriber', ''), [], 'a name is typed')
  t.strictSame(offered('abohawa', 'serve', 'z'), [])
  t.end()
})

for (const [shell, check] of [
  ['zsh', '-n'],
  ['fish', '--no-execute'],
] as const) {
  const isThere = spawnSync(shell, ['--version']).status === 0
  t.test(`${shell} can read its script`, { skip: isThere ? false : `needs ${shell}` }, t => {
    const { status, stderr } = spawnSync(shell, [check, scripts[shell] ?? ''], { encoding: 'utf8' })
    t.match({ status, stderr }, { status: 0, stderr: '' })
    t.end()
  })
}

t.test('the shell is one of three, and --json gives the script as a value', async t => {
  const refused = await runCommand(['completion', 'csh'])
  t.match(refused, {
    code: 2,
    stdout: '',
    stderr: /'csh' is invalid for argument 'shell'\. Allowed choices are bash, zsh, fish/,
  })
  t.match(JSON.parse((await runCommand(['completion', 'bash', '--json'])).stdout), {
    shell: 'bash',
    script: /^# Completes abohawa in bash\.\n/,
  })
  const { stdout } = await runCommand(['completion', '--help'])
  t.match(stdout, 'Example:\n  npm run -s abohawa -- completion bash')
})
