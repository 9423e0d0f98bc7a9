// Reserves budget for a batch of queued cells: for each consumer what its share allows, and for cold cells first.

import type { Budget } from './budget.ts'
import type { Purpose, Reservation } from './charge.ts'
import { OutOfBudgetError, type ProviderError, ShareUsedUpError } from './errors.ts'
import type { Waiting } from './queue.ts'

/** A cell that gets no budget, and why. */
export type RefusedCell = { readonly waiting: Waiting; readonly error: ProviderError }

export type BatchReservation = Pick<Reservation, 'isValid' | 'limited' | 'settle'>

type Reserved = {
  readonly admitted: readonly Waiting[]
  readonly refused: readonly RefusedCell[]
  readonly reservation: BatchReservation
}

/** @param recent the consumers that asked for weather last: they count as present, even if they want nothing now */
export const createBatchReservation = (budget: Pick<Budget, 'reserve'>, recent: () => readonly string[]) => {
  const reserveFor = async (cells: readonly Waiting[], purpose: Purpose): Promise<Reserved> => {
    const counts = new Map<string | undefined, number>()
    for (const { consumer } of cells) counts.set(consumer, (counts.get(consumer) ?? 0) + 1)
    const unclaimed = counts.get(undefined) ?? 0
    counts.delete(undefined)
    if (counts.size > 0) for (const consumer of recent()) counts.getOrInsert(consumer, 0)
    const claims = [...counts].map(([consumer = '', points]) => ({ consumer, points }))
    const reservation = await budget.reserve(unclaimed, purpose, claims)

    type Left = { points: number; readonly throttledUntil: number | null; error?: ProviderError }
    const left = new Map<string | undefined, Left>()
    left.set(undefined, { points: reservation.points, throttledUntil: null })
    for (const [i, { consumer }] of claims.entries())
      left.set(consumer, { ...(reservation.claims[i] ?? { points: 0, throttledUntil: null }) })
    const admitted: Waiting[] = []
    const refused: RefusedCell[] = []
    for (const waiting of cells) {
      const { consumer } = waiting
      const of = left.getOrInsertComputed(consumer, () => ({ points: 0, throttledUntil: null }))
      if (of.points > 0) {
        of.points -= 1
        admitted.push(waiting)
        continue
      }
      of.error ??=
        consumer === undefined || of.throttledUntil === null
          ? new OutOfBudgetError(reservation.retryAt)
          : new ShareUsedUpError(consumer, of.throttledUntil)
      refused.push({ waiting, error: of.error })
    }
    return { admitted, refused, reservation }
  }

  return {
    first: async (batch: readonly Waiting[]): Promise<Reserved> => {
      const cold = await reserveFor(batch.filter(isCold), 'cold')
      const others = batch.filter(waiting => !isCold(waiting))
      // Where a cold cell finds no room, none is left for others.
      const full = cold.refused.find(isOfAll)?.error
      const rest = await reserveFor(full ? [] : others, 'refresh')
      const refused = full ? others.map(waiting => ({ waiting, error: full })) : rest.refused
      return {
        admitted: [...cold.admitted, ...rest.admitted],
        refused: [...cold.refused, ...refused],
        reservation: {
          isValid: () => cold.reservation.isValid() && rest.reservation.isValid(),
          // A request belongs to one account.
          limited: cold.reservation.limited,
          settle: async outcome => {
            await Promise.all([cold.reservation.settle(outcome), rest.reservation.settle(outcome)])
          },
        },
      }
    },
    /** For the whole of a batch that is tried again. @throws OutOfBudgetError, ShareUsedUpError */
    again: async (batch: readonly Waiting[]): Promise<BatchReservation> => {
      const { refused, reservation } = await reserveFor(batch, batch.some(isCold) ? 'cold' : 'refresh')
      if (!refused[0]) return reservation
      await reservation.settle('unsent')
      throw (refused.find(isOfAll) ?? refused[0]).error
    },
  }
}

const isCold = ({ urgency }: Waiting): boolean => urgency === 'cold'
/** Whether the whole budget refused, not one share. */
const isOfAll = ({ error }: RefusedCell): boolean => error instanceof OutOfBudgetError
