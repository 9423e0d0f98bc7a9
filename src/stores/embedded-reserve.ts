// The reserve: a preallocated file beside the embedded store's, for counts on a full disk. Each count has a slot, as text
// with a checksum, which is overwritten in place. embedded-reserved-counts.ts decides when to use it and write it back.

import { closeSync, fstatSync, ftruncateSync, readSync, writeSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { messageOf } from '../errors.ts'
import { openToUpdate } from '../regular-file.ts'
import { instantIn, mostCounted, wholeIn } from './records.ts'

/** Units that a key used on a day, and until when the count is kept. */
export type ReservedCount = {
  readonly keyId: string
  readonly day: string
  readonly used: number
  readonly keepUntil: number
}

export type Reserve = {
  /** All counts, those of a former process too, without `damaged` slots. Later counts overwrite them. */
  read(): { counts: ReservedCount[]; damaged: number }
  /** Writes all counts, or none: false when they do not fit. @throws Error when the file can't be written */
  put(counts: readonly ReservedCount[]): boolean
  clear(): void
  close(): void
}

/** Number of slots. */
export const mostReserved = 8_192
// Ids have up to 200 characters.
const slotBytes = 256
const size = mostReserved * slotBytes

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
  const slots = new Map<string, number>()
  const slotOf = ({ keyId, day }: ReservedCount): number => slots.get(`${day} ${keyId}`) ?? slots.size
  const write = (bytes: Buffer, at: number): void => {
    for (let done = 0; done < bytes.length; )
      done += writeSync(file, bytes, done, bytes.length - done, at + done)
  }

  return {
    read: () => {
      const bytes = Buffer.alloc(size)
      readSync(file, bytes, 0, size, 0)
      const counts: ReservedCount[] = []
      let damaged = 0
      slots.clear()
      for (let at = 0; at < size && bytes[at] !== 0; at += slotBytes) {
        const count = countIn(bytes.toString('utf8', at, at + slotBytes))
        if (count) counts.push(count)
        else damaged += 1
        slots.set(count ? `${count.day} ${count.keyId}` : `damaged ${at}`, at / slotBytes)
      }
      return { counts, damaged }
    },
    put: counts => {
      const fresh = counts.filter(({ keyId, day }) => !slots.has(`${day} ${keyId}`))
      const texts = counts.map(slotText)
      if (slots.size + fresh.length > mostReserved || texts.includes(undefined)) return false
      counts.forEach((count, i) => {
        const slot = slotOf(count)
        write(Buffer.from((texts[i] ?? '').padEnd(slotBytes)), slot * slotBytes)
        slots.set(`${count.day} ${count.keyId}`, slot)
      })
      return true
    },
    clear: () => {
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
  if (used === undefined || used > mostCounted || keepUntil === undefined) return undefined
  return crc32(text) === Number.parseInt(checksum, 16) ? { keyId, day, used, keepUntil } : undefined
}
