// The clock, timers on it, and a clock that follows another machine's. No other file reads the machine's clock.

/** The tolerated clock skew between gateways that share a store. */
export const clockToleranceMs = 300_000

/** A source of the current instant, in milliseconds since 1970-01-01T00:00Z. */
export type Clock = {
  now(): number
  /**
   * Ms from any beginning, which nobody can set; it may stand still while the machine is suspended. Absent where the clock is
   * moved by hand.
   */
  readonly elapsed?: () => number
  /**
   * Timers that follow this clock. Absent where it advances as the machine's does; present where it is moved, as in a
   * rehearsal, so that periodic work keeps its place in the day. Timeouts of sockets and of the store never follow it.
   */
  readonly timers?: Timers
}

/** Both return the function that ends them. */
export type Timers = {
  /** Runs the work each time so many ms have passed. */
  every(ms: number, work: () => unknown): () => void
  /** Runs the work once, after so many ms. */
  after(ms: number, work: () => unknown): () => void
}

export const systemClock: Clock = { now: () => Date.now(), elapsed: () => performance.now() }

/** Whether an instant is still to come, and not further away than the longest wait: the clock may have been set back since. */
export const isStillToCome = (clock: Clock, instant: number, longestMs: number): boolean => {
  const left = instant - clock.now()
  return left > 0 && left <= longestMs
}

/** Returns this instant by the corrected clock: one taken before a correction could be decades off. */
export const presentInstant = (clock: Clock): (() => number) => {
  const { elapsed } = clock
  const takenAt = clock.now()
  if (!elapsed) return () => takenAt
  const elapsedThen = elapsed()
  return () => {
    const present = Math.round(clock.now() - (elapsed() - elapsedThen))
    // Clocks are corrected by little all the time.
    return Math.abs(present - takenAt) < clockToleranceMs ? takenAt : present
  }
}

/** Runs periodic work by a clock; it keeps no process alive. Returns the function that ends it. */
export const every = ({ timers }: Clock, ms: number, work: () => unknown): (() => void) => {
  if (timers) return timers.every(ms, work)
  const timer = setInterval(work, ms).unref()
  return () => clearInterval(timer)
}

/** Runs work once, by a clock. Returns the function that calls it off. */
export const after = ({ timers }: Clock, ms: number, work: () => unknown): (() => void) => {
  if (timers) return timers.after(ms, work)
  const timer = setTimeout(work, ms)
  return () => clearTimeout(timer)
}

/** The clock of another machine, by its last measurement. */
export type FollowingClock = Clock & {
  /** Measures the other clock again; keeps the previous measurement when it can't be read. */
  measure(): Promise<void>
  /** False until the first measurement, and after this machine's clock was set or the machine was suspended. */
  isMeasured(): boolean
  /** The other clock minus this machine's, in ms. */
  offsetMs(): number
}

// With a slower reply, the instant at which the other clock was read is too uncertain.
const slowestReplyMs = 250
// Corrections of a clock that runs too fast or too slow are smaller.
const smallestStepMs = 1_000

/**
 * Until the first measurement it is this machine's clock. Then `elapsed` carries it on, so that setting this machine's clock moves
 * nothing.
 * @param read reads the other clock, ms since the epoch
 */
export const createFollowingClock = (
  read: () => Promise<number>,
  clock: Clock,
  elapsed: () => number = clock.elapsed ?? clock.now,
): FollowingClock => {
  let source = clock.now
  /** This machine's clock minus the source, and the other clock minus this machine's, both at the last measurement. */
  let sourceMs = 0
  let offsetMs = 0
  let isMeasured = false
  const stepMs = (): number => {
    const ms = clock.now() - source() - sourceMs
    return Math.abs(ms) > smallestStepMs ? ms : 0
  }
  return {
    ...(clock.timers && { timers: clock.timers }),
    ...(clock.elapsed && { elapsed: clock.elapsed }),
    now: () => Math.round(source() + sourceMs + offsetMs),
    offsetMs: () => Math.round(offsetMs - stepMs()),
    isMeasured: () => isMeasured && stepMs() === 0,
    measure: async () => {
      const sent = { wall: clock.now(), elapsed: elapsed() }
      const otherTime = await read().catch(() => undefined)
      const received = { wall: clock.now(), elapsed: elapsed() }
      const tookMs = Math.max(received.wall - sent.wall, received.elapsed - sent.elapsed)
      if (otherTime === undefined || tookMs > slowestReplyMs) return
      source = elapsed
      sourceMs = received.wall - received.elapsed
      const sentAt = sent.elapsed + sourceMs
      // Read between the two instants: the clocks may agree.
      const agrees = otherTime >= sentAt - 1 && otherTime <= received.wall + 1
      offsetMs = agrees ? 0 : Math.round(otherTime - (sentAt + received.wall) / 2)
      isMeasured = true
    },
  }
}
