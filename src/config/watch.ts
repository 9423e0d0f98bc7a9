// Watches the config files by polling their paths, which sees swapped links, renames and network shares. It reports content that
// two polls agree on.

import { hash } from 'node:crypto'
import { maxFileBytes, readRegularFile, versionOf } from '../common/regular-file.ts'

export type FileWatchOptions<Outcome> = {
  /** The current files; they may change with their contents. */
  readonly files: () => readonly string[]
  /** The time between two polls; null for none. */
  readonly pollMs: number | null
  /** Reads the files. Called after the first two polls, and then for each new content. */
  readonly onChange: () => Promise<Outcome>
  /** Called at every fifth poll that finds nothing new. */
  readonly onQuiet?: () => Promise<unknown>
}

export type FileWatch<Outcome> = {
  /** Polls now. */
  poll(): Promise<void>
  /** Calls `onChange` now, whatever the content, as at a signal. */
  readNow(): Promise<Outcome>
  close(): void
}

// Only content decides what is new: a file that is touched before each poll is settled, and one that was written within a tick of
// its clock is not missed. Versions show files that were changed and changed back while they were read.
const contentOf = (path: string): Promise<string> =>
  readRegularFile(path, maxFileBytes.pem).then(
    bytes => hash('sha256', bytes),
    () => 'unreadable',
  )

const quietEvery = 5

type State = { readonly versions: string; readonly content: string }

const stateOf = async (paths: readonly string[]): Promise<State> => {
  const of = async (read: (path: string) => Promise<string>): Promise<string> =>
    (await Promise.all(paths.map(async path => `${path} ${await read(path)}`))).join('\n')
  // The version first: a write in between changes it, and the next poll sees that.
  return { versions: await of(versionOf), content: await of(contentOf) }
}

const isSame = (one: State, other: State): boolean =>
  one.versions === other.versions && one.content === other.content

export const watchFiles = <Outcome>({
  files,
  pollMs,
  onChange,
  onQuiet,
}: FileWatchOptions<Outcome>): FileWatch<Outcome> => {
  let seen: State | undefined
  // Undefined when it is not certain what was read.
  let read: string | undefined
  let polling: Promise<unknown> = Promise.resolve()
  let isClosed = false
  let quietPolls = 0

  const current = (): Promise<State> => stateOf([...new Set(files())])

  const readFrom = async (before: State): Promise<Outcome> => {
    const outcome = await onChange()
    // After a change meanwhile, and perhaps back, it is unknown which content was read.
    const after = await current()
    read = isSame(before, after) ? before.content : undefined
    seen = after
    return outcome
  }
  const poll = async (): Promise<void> => {
    const found = await current()
    const isSettled = seen?.content === found.content
    seen = found
    if (!isSettled || isClosed) return
    if (found.content !== read) await readFrom(found)
    else if (++quietPolls % quietEvery === 0) await onQuiet?.()
  }
  // One at a time.
  const next = <Value>(step: () => Promise<Value>): Promise<Value> => {
    const done = polling.then(step)
    polling = done.catch(() => {})
    return done
  }
  const timer = pollMs === null ? undefined : setInterval(() => void next(poll), pollMs).unref()

  return {
    poll: () => next(poll),
    readNow: () => next(async () => readFrom(await current())),
    close: () => {
      isClosed = true
      clearInterval(timer)
    },
  }
}
