// Reads docs/runbook.md as an operator does: the paragraph of an alert, its steps, and their commands, which are run in bash.
// A command that must not or can't be run by a test is on a list, with the reason.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cleanEnv, runProgram } from '../support/process.ts'
import type { Teardown } from '../support/teardown.ts'
import { patienceMs } from '../support/until.ts'

const root = join(import.meta.dirname, '..', '..')

const runbook = readFileSync(join(root, 'docs/runbook.md'), 'utf8')

/** `text` is Markdown. */
type Step = { readonly text: string; readonly commands: readonly Command[] }

/** `skipped`: why no test runs it; undefined for one that is run. */
type Command = { readonly text: string; readonly skipped: string | undefined }

type Paragraph = {
  readonly alert: string
  /** What the alert means. */
  readonly cause: string
  readonly consumers: string
  readonly steps: readonly Step[]
}

const notRun: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [/^docker /, 'needs the containers of compose.yaml'],
  [/^(journalctl|dmesg|systemctl|timedatectl|chronyc|certbot) ?/, 'needs the machine of the gateway'],
  [/^(top|vmstat|ss) /, 'is about the whole machine'],
  [/^timeout 20 /, 'takes 20 s'],
  [/ --bigkeys /, 'reads every key, slowly on purpose'],
  [/ config set /, 'changes Redis'],
  [/^bin\/abohawa (keys (revoke|set)|budget reopen|store import)\b/, 'changes the store'],
  [/^(kill|ulimit) /, 'changes the process'],
  [/^bin\/abohawa keys (usage|why) ID\b/, 'needs the id of a key'],
  [/^sha256sum locations\.json$/, 'is about the files of two machines'],
  [/^diff$|^mv$/, 'names a program'],
]

// What is run must begin with one of these, so that a new command is either run or on the list.
const readsOnly = /^(curl|bin\/abohawa|redis-cli|timeout 3 redis-cli|df|ls|openssl|echo \| openssl) /

/** Other text in code font: settings, values and words of the log. */
const isCommand = (text: string): boolean =>
  readsOnly.test(text) || notRun.some(([pattern]) => pattern.test(text)) || /[$|]| -/.test(text)

const commandsIn = (step: string): Command[] =>
  [...step.matchAll(/`([^`]+)`/g)]
    .map(([, text = '']) => text)
    .filter(isCommand)
    .map(text => ({ text, skipped: notRun.find(([pattern]) => pattern.test(text))?.[1] }))

/** All paragraphs, in their order. @throws Error for a command that is neither run nor on the list */
export const paragraphs: readonly Paragraph[] = runbook
  .split(/^## /m)
  .slice(1)
  .map(section => {
    const [alert = '', ...rest] = section.split('\n')
    const text = rest.join('\n')
    const [, cause = '', consumers = ''] = /^\s*(.+?) \*\*Consumers:\*\* (.+?)\n/s.exec(text) ?? []
    const steps = [...text.matchAll(/^\d\. (.*)$/gm)].map(([, step = '']) => ({
      text: step,
      commands: commandsIn(step),
    }))
    for (const { text: command, skipped } of steps.flatMap(({ commands }) => commands))
      if (skipped === undefined && !readsOnly.test(command))
        throw new Error(`${alert}: \`${command}\` is neither run nor on the list of test/deploy/runbook.ts`)
    return { alert, cause, consumers, steps }
  })

/** @throws Error for an alert without one */
export const paragraphOf = (alert: string): Paragraph => {
  const found = paragraphs.find(paragraph => paragraph.alert === alert)
  if (!found) throw new Error(`docs/runbook.md has no paragraph ${alert}`)
  return found
}

/** Runs a command as one that was pasted into a shell, where a stage of a pipe may fail too. */
export const runInShell = (t: Teardown, command: string, variables: Record<string, string>) =>
  runProgram(t, ['bash', '-o', 'pipefail', '-u', '-c', command], {
    cwd: root,
    env: cleanEnv(variables),
    timeout: patienceMs,
  })
