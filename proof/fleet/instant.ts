// The true instant of a history in a file, for gateways in separate processes: each look at their clock reads it, so that all
// clocks of a fleet agree at every moment, also that of a process which stood still.

import { closeSync, openSync, readSync, writeSync } from 'node:fs'

const bytes = 8

export type WrittenInstant = { write(ms: number): void; close(): void }

export const writeInstant = (path: string): WrittenInstant => {
  const file = openSync(path, 'w', 0o600)
  const buffer = Buffer.alloc(bytes)
  return {
    write: ms => {
      buffer.writeDoubleLE(ms)
      writeSync(file, buffer, 0, bytes, 0)
    },
    close: () => closeSync(file),
  }
}

/** @param path a file that has been written */
export const readInstant = (path: string): (() => number) => {
  const file = openSync(path, 'r')
  const buffer = Buffer.alloc(bytes)
  return () => {
    readSync(file, buffer, 0, bytes, 0)
    return buffer.readDoubleLE()
  }
}
