// Smooth noise without state: hashed numbers on a lattice in longitude, latitude and time, interpolated. The same salt, place and
// instant give the same number in every process.

import { hourMs } from 'abohawa/common/calendar.ts'
import type { Place } from './points.ts'

/** A number in -1..1 that changes smoothly with time, at one place; instants are ms since the epoch. */
export type Ripple = (instant: number) => number

/** Noise whose bumps are `degrees` wide and `hours` long. */
export const createRipple = (salt: number, place: Place, degrees: number, hours: number): Ripple => {
  const sheet = sheetAt(salt, place, degrees)
  // Shifted by the salt, so that the lattices of different ripples do not turn at the same instants.
  const shift = salt / 2 ** 32
  const period = hours * hourMs
  let row = Number.NaN
  let before = 0
  let after = 0
  return instant => {
    const position = instant / period + shift
    const floor = Math.floor(position)
    if (floor !== row) {
      before = floor === row + 1 ? after : sheet(floor)
      after = sheet(floor + 1)
      row = floor
    }
    return before + (after - before) * fade(position - floor)
  }
}

/** Noise in space alone, -1..1. */
export const bumpsAt = (salt: number, place: Place, degrees: number): number =>
  sheetAt(salt, place, degrees)(0)

/** One 32-bit number for a list of numbers and words. */
export const saltOf = (...parts: readonly (number | string)[]): number => {
  let salt = 0x2545f491
  for (const part of parts) {
    if (typeof part === 'number') salt = mix(salt ^ Math.imul(part | 0, 0x9e3779b1))
    else for (let i = 0; i < part.length; i++) salt = mix(salt ^ part.charCodeAt(i))
  }
  return salt >>> 0
}

// The value at the place on each plane of the lattice, blended from the four corners around the place.
const sheetAt = (salt: number, place: Place, degrees: number): ((plane: number) => number) => {
  const x = place.longitude / degrees + salt / 2 ** 32
  const y = place.latitude / degrees + salt / 2 ** 32
  const west = Math.floor(x)
  const south = Math.floor(y)
  const across = fade(x - west)
  const up = fade(y - south)
  const southWest = cornerOf(salt, west, south)
  const southEast = cornerOf(salt, west + 1, south)
  const northWest = cornerOf(salt, west, south + 1)
  const northEast = cornerOf(salt, west + 1, south + 1)
  return plane => {
    const key = Math.imul(plane, 0xc2b2ae3d)
    const lower = blend(unit(southWest ^ key), unit(southEast ^ key), across)
    return blend(lower, blend(unit(northWest ^ key), unit(northEast ^ key), across), up)
  }
}

const cornerOf = (salt: number, x: number, y: number): number =>
  mix(mix(salt ^ Math.imul(x, 0x9e3779b1)) ^ Math.imul(y, 0x85ebca77))

const unit = (key: number): number => mix(key) / 2 ** 31

const blend = (from: number, to: number, share: number): number => from + (to - from) * share

const fade = (share: number): number => share * share * (3 - 2 * share)

const mix = (value: number): number => {
  const once = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35)
  return twice ^ (twice >>> 16)
}
