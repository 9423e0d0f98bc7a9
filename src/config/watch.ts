// Watches the files that a configuration is read from. Polls their paths, as the catalogue's file is polled: links that are
// swapped (ConfigMaps), files that are renamed into place (editors), mounted files and network shares are all seen. Reports a
// change once the files were the same at two looks and what is in them is new. Reads no settings.

import { hash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'

export type FileWatchOptions = {
  /** The files of now; they may change with what is in them. */
  readonly files: () => readonly string[]
  /** The time between two looks; null for none. */
  readonly pollMs: number | null
  /** Called after the first two looks, and then for each new content. */
  readonly onChange: () => Promise<unknown>
}

export type FileWatch = {
  /** Looks now. */
  look(): Promise<void>
  /** Looks at another interval from now on, or no more. */
  pollEvery(ms: number | null): void
  close(): void
}

const versionOf = (path: string): Promise<string> =>
  stat(path, { bigint: true }).then(
    ({ dev, ino, size, mtimeNs, ctimeNs }) => [path, dev, ino, size, mtimeNs, ctimeNs].join(),
    () => `${path},unreadable`,
  )

const contentOf = (path: string): Promise<string> =>
  readFile(path).then(
    bytes => `${path} ${hash('sha256', bytes)}`,
    () => `${path} unreadable`,
  )

export const watchFiles = ({ files, pollMs, onChange }: FileWatchOptions): FileWatch => {
  let seen: string | undefined
  let isSettled = false
  let content: string | undefined
  let looking: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const poll = async (): Promise<void> => {
    const paths = [...new Set(files())]
    const version = (await Promise.all(paths.map(versionOf))).join('\n')
    if (version !== seen) {
      seen = version
      isSettled = false
      return
    }
    if (isSettled) return
    isSettled = true
    const found = (await Promise.all(paths.map(contentOf))).join('\n')
    if (found === content || isClosed) return
    content = found
    await onChange()
  }
  // One look at a time.
  const look = (): Promise<void> => {
    looking = looking.then(poll)
    return looking
  }
  const pollEvery = (ms: number | null): void => {
    clearInterval(timer)
    if (ms !== null && !isClosed) timer = setInterval(() => void look(), ms).unref()
  }
  pollEvery(pollMs)

  return {
    look,
    pollEvery,
    close: () => {
      isClosed = true
      clearInterval(timer)
    },
  }
}
