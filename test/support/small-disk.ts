// A small file system for a test that needs a full disk. Mounting needs root; without it the tests that need it are skipped
// with a reason.

import { execFileSync } from 'node:child_process'
import { closeSync, openSync, rmdirSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runs } from './programs.ts'
import type { Teardown } from './teardown.ts'

/** For tests that mount: false, or why they are skipped. */
export const withoutMounts: string | false =
  process.platform === 'linux' &&
  process.getuid?.() === 0 &&
  // In its own namespace, so that this check leaves nothing behind.
  runs('unshare', '-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt')
    ? false
    : 'needs root on Linux, to mount a small file system'

export type SmallDisk = {
  readonly folder: string
  /** Fills the file system, to the last page. */
  fill(): void
  /** Frees that space. */
  free(): void
  /** Bytes that can still be written. */
  room(): number
}

export const smallDisk = async (t: Teardown, bytes: number): Promise<SmallDisk> => {
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', folder])
  t.teardown(() => {
    // Whoever still has a file open there keeps it to itself.
    execFileSync('umount', ['--lazy', folder])
    rmdirSync(folder)
  })
  const ballast = join(folder, 'ballast')
  return {
    folder,
    fill: () => {
      const file = openSync(ballast, 'a')
      try {
        // Ends with ENOSPC, and not before.
        for (;;) writeSync(file, Buffer.alloc(4_096, 1))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      } finally {
        closeSync(file)
      }
    },
    free: () => rmSync(ballast, { force: true }),
    room: () => {
      const { bavail, bsize } = statfsSync(folder)
      return bavail * bsize
    },
  }
}
