// The reserve: a preallocated file beside the embedded store's, for counts on a full disk. Each count has a slot, as text
// with a checksum, which is overwritten in place. Several processes share it: a process that changes it holds the store's write lock.
// usage.ts decides when to use it and write it back.

import { closeSync, fstatSync, ftruncateSync, readSync, writeSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { messageOf } from '../../common/errors.ts'
import { openToUpdate } from '../../common/regular-file.ts'
import { instantIn, maxCounted, wholeIn } from '../records.ts'

/** Units that a key used on a day, and until when the count is kept. */
export type ReservedCount = {
  readonly keyId: string
  readonly day: string
  readonly used: number
  readonly keepUntil: number
}

export type Reserve = {
  /** The descriptor of the file, whose first byte is 0 while there is no count. */
  readonly file: number
  /** All counts, those of other processes too, without `damaged` slots. Later counts overwrite them. */
  read(): { counts: ReservedCount[]; damaged: number }
  /** The count of a key and day as it stands in the file. */
  find(keyId: string, day: string): ReservedCount | undefined
  /** Writes all counts, or none: false when they do not fit. @throws Error when the file can't be written */
  put(counts: readonly ReservedCount[]): boolean
  clear(): void
  close(): void
}

/** Number of slots. */
export const maxReserved = 8_191
// Ids have up to 200 characters.
const slotBytes = 256
const slotsBytes = maxReserved * slotBytes
// Instead of one more slot: the number of times they were cleared, so that other processes notice.
const clearedBytes = 8
const size = slotsBytes + slotBytes

export const reservePath = (storePath: string): string => `${storePath}-reserve`

/** Opens the file, or creates it. @throws Error when the disk has no room, or the path is no regular file */
export const openReserve = (storePath: string): Reserve => {
  const path = reservePath(storePath)
  const file = opened(path)
  try {
    allocate(file)
  } catch (error) {
    closeSync(file)
    throw error
  }
  // Where each count is, as far as this process has read: a count keeps its slot until all are cleared.
  const slots = new Map<string, number>()
  let cleared = -1n
  const nameOf = (keyId: string, day: string) => `${day} ${keyId}`
  const bytesAt = (at: number, length: number): Buffer => {
    const bytes = Buffer.alloc(length)
    readSync(file, bytes, 0, length, at)
    return bytes
  }
  const write = (bytes: Buffer, at: number): void => {
    for (let done = 0; done < bytes.length; )
      done += writeSync(file, bytes, done, bytes.length - done, at + done)
  }
  const clearedTimes = (): bigint => bytesAt(slotsBytes, clearedBytes).readBigUInt64LE()
  const countAt = (slot: number): ReservedCount | undefined =>
    countIn(bytesAt(slot * slotBytes, slotBytes).toString('utf8'))
  /** Learns the slots that other processes took since the last time. */
  const catchUp = (): void => {
    const now = clearedTimes()
    if (now !== cleared) slots.clear()
    cleared = now
    while (slots.size < maxReserved && bytesAt(slots.size * slotBytes, 1)[0] !== 0) {
      const count = countAt(slots.size)
      const name = count && nameOf(count.keyId, count.day)
      // Every slot has a name, so that their number is that of the next one.
      slots.set(name === undefined || slots.has(name) ? `unused ${slots.size}` : name, slots.size)
    }
  }

  return {
    file,
    read: () => {
      catchUp()
      const all = [...slots.values()].map(countAt)
      const counts = all.flatMap(count => count ?? [])
      return { counts, damaged: all.length - counts.length }
    },
    find: (keyId, day) => {
      catchUp()
      const slot = slots.get(nameOf(keyId, day))
      const count = slot === undefined ? undefined : countAt(slot)
      return count?.keyId === keyId && count.day === day ? count : undefined
    },
    put: counts => {
      catchUp()
      const fresh = counts.filter(({ keyId, day }) => !slots.has(nameOf(keyId, day)))
      const texts = counts.map(slotText)
      if (slots.size + fresh.length > maxReserved || texts.includes(undefined)) return false
      counts.forEach(({ keyId, day }, i) => {
        const name = nameOf(keyId, day)
        const slot = slots.get(name) ?? slots.size
        write(Buffer.from((texts[i] ?? '').padEnd(slotBytes)), slot * slotBytes)
        slots.set(name, slot)
      })
      return true
    },
    clear: () => {
      catchUp()
      const next = Buffer.alloc(clearedBytes)
      next.writeBigUInt64LE(BigInt.asUintN(64, cleared + 1n))
      write(next, slotsBytes)
      write(Buffer.alloc(slots.size * slotBytes), 0)
      slots.clear()
    },
    close: () => closeSync(file),
  }
}

const opened = (path: string): number => {
  try {
    return openToUpdate(path, 0o600)
  } catch (cause) {
    throw new Error(`${path} can't be opened: ${messageOf(cause)}`, { cause })
  }
}

// Also completes a file that was cut off. Writes zeros, because a sparse hole has no blocks.
const allocate = (file: number): void => {
  const stat = fstatSync(file)
  try {
    for (let at = stat.size; at < size; ) at += writeSync(file, Buffer.alloc(size - at), 0, null, at)
  } catch (error) {
    ftruncateSync(file, stat.size)
    throw error
  }
}

/** Undefined for a count that fits no slot. */
const slotText = ({ keyId, day, used, keepUntil }: ReservedCount): string | undefined => {
  const text = `${keyId} ${day} ${used} ${keepUntil} `
  const whole = `${crc32(text).toString(16).padStart(8, '0')} ${text}`
  return Buffer.byteLength(whole) === whole.length && whole.length <= slotBytes ? whole : undefined
}

const countIn = (slot: string): ReservedCount | undefined => {
  const [, checksum = '', text = '', keyId = '', day = '', usedText, untilText] =
    /^([0-9a-f]{8}) ((\S+) (\d{4}-\d\d-\d\d) (\d+) (\d+) ) *$/.exec(slot) ?? []
  const [used, keepUntil] = [wholeIn(usedText), instantIn(untilText)]
  if (used === undefined || used > maxCounted || keepUntil === undefined) return undefined
  return crc32(text) === Number.parseInt(checksum, 16) ? { keyId, day, used, keepUntil } : undefined
}
