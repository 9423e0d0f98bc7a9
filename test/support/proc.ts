// What Linux says of a process.

import { readFileSync } from 'node:fs'

/** Its resident memory in MiB: now, or the most so far. */
export const residentMiB = (pid = 0, of: 'VmRSS' | 'VmHWM' = 'VmRSS'): number =>
  Number(new RegExp(`^${of}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) /
  1024

/** What it started; nothing once it is gone. */
export const childrenOf = (pid = 0): number[] => {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return text.split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}
