// Watches the files that a configuration is read from. Reads their paths at intervals, as the catalogue's file is polled: links
// that are swapped (ConfigMaps), files that are renamed into place (editors), mounted files and network shares are all seen.
// Reports content that two polls agree on and that differs from what was read last, by whomever. Reads no settings.

import { hash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { maxFileBytes, readRegularFile } from '../regular-file.ts'

export type FileWatchOptions<Outcome> = {
  /** The files of now; they may change with what is in them. */
  readonly files: () => readonly string[]
  /** The time between two polls; null for none. */
  readonly pollMs: number | null
  /** Reads the files. Called after the first two polls, and then for each new content. */
  readonly onChange: () => Promise<Outcome>
}

export type FileWatch<Outcome> = {
  /** Looks now. */
  look(): Promise<void>
  /** Has the files read now, whatever is in them, as at a signal. */
  readNow(): Promise<Outcome>
  /** Looks at another interval from now on, or no more. */
  pollEvery(ms: number | null): void
  close(): void
}

// Content alone says what is new: a file that is touched at each look is settled, and one that was written within a tick of its
// clock is not missed. Versions show what was changed and changed back while the files were read.
const versionOf = (path: string): Promise<string> =>
  stat(path, { bigint: true }).then(
    ({ dev, ino, size, mtimeNs, ctimeNs }) => [dev, ino, size, mtimeNs, ctimeNs].join(),
    () => 'unreadable',
  )

const contentOf = (path: string): Promise<string> =>
  readRegularFile(path, maxFileBytes.pem).then(
    bytes => hash('sha256', bytes),
    () => 'unreadable',
  )

type State = { readonly versions: string; readonly content: string }

const stateOf = async (paths: readonly string[]): Promise<State> => {
  const of = async (read: (path: string) => Promise<string>): Promise<string> =>
    (await Promise.all(paths.map(async path => `${path} ${await read(path)}`))).join('\n')
  // The version first: who writes in between changes it, which the next look sees.
  return { versions: await of(versionOf), content: await of(contentOf) }
}

const isSame = (one: State, other: State): boolean =>
  one.versions === other.versions && one.content === other.content

export const watchFiles = <Outcome>({
  files,
  pollMs,
  onChange,
}: FileWatchOptions<Outcome>): FileWatch<Outcome> => {
  let seen: State | undefined
  // Undefined when it is not certain what was read.
  let read: string | undefined
  let looking: Promise<unknown> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const look = (): Promise<State> => stateOf([...new Set(files())])

  const readFrom = async (before: State): Promise<Outcome> => {
    const outcome = await onChange()
    // A file that was changed meanwhile, and perhaps changed back: nobody knows which of its contents was read.
    const after = await look()
    read = isSame(before, after) ? before.content : undefined
    seen = after
    return outcome
  }
  const poll = async (): Promise<void> => {
    const found = await look()
    const isSettled = seen?.content === found.content
    seen = found
    if (isSettled && found.content !== read && !isClosed) await readFrom(found)
  }
  // One at a time.
  const next = <Value>(step: () => Promise<Value>): Promise<Value> => {
    const done = looking.then(step)
    looking = done.catch(() => {})
    return done
  }
  const pollEvery = (ms: number | null): void => {
    clearInterval(timer)
    if (ms !== null && !isClosed) timer = setInterval(() => void next(poll), ms).unref()
  }
  pollEvery(pollMs)

  return {
    look: () => next(poll),
    readNow: () => next(async () => readFrom(await look())),
    pollEvery,
    close: () => {
      isClosed = true
      clearInterval(timer)
    },
  }
}
