// The keys that the dashboard shows: those with most requests today, or those that a search finds among all. Who holds each and what
// it has used is of the store; what it did by hour, and why it was refused, is of this gateway.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Calendar, isoOf, isoOrNull } from '../common/calendar.ts'
import { limitOfTier, type Tiers } from '../keys/authentication.ts'
import type { KeyActivities } from '../keys/key-activity.ts'
import { subscribersOf } from '../keys/key-creation.ts'
import { foldName } from '../keys/name-forms.ts'
import type { KeyRecord, Store } from '../stores/store.ts'
import type { DayUsage } from './day-usage.ts'
import type { KeyPanelReport, PanelKey } from './listener/key-panel-report.ts'

const mostShown = 50
// Each part of the keys is read in one turn of the event loop.
const keysRead = 50
// A search over very many keys ends here, and says so.
const searchForMs = 5_000

type Parts = {
  readonly store: Pick<Store, 'findKey' | 'findSubscriber' | 'listKeys' | 'countKeys' | 'usedOn'>
  readonly dayUsage: () => Promise<DayUsage>
  readonly activities: Pick<KeyActivities, 'of'>
  /** As they are now. */
  readonly tiers: () => Tiers
  readonly calendar: Calendar
  /** The instant by the clock that decides the day of quota. */
  readonly now: () => number
}

export type KeyPanel = ReturnType<typeof createKeyPanel>

/** @param wanted a part of an id or of a subscriber's name; the keys with most requests without one. @throws StoreError */
export const createKeyPanel =
  ({ store, dayUsage, activities, tiers, calendar, now }: Parts) =>
  async (wanted = ''): Promise<KeyPanelReport> => {
    const shown = (
      key: KeyRecord | undefined,
      keyId: string,
      subscriber: string | null,
      used: number,
      known?: number,
    ): PanelKey => {
      const here = activities.of(keyId)
      return {
        keyId,
        subscriber,
        tier: key?.tier ?? null,
        used,
        limit: known ?? key?.limit ?? limitOfTier(tiers(), key?.tier ?? '') ?? null,
        here: here ? { ...here, lastUsedAt: isoOrNull(here.lastUsedAt) } : null,
      }
    }
    const byUse = (keys: readonly PanelKey[]): PanelKey[] =>
      keys.toSorted((one, other) => other.used - one.used).slice(0, mostShown)

    const mostUsed = async (): Promise<PanelKey[]> => {
      const { top } = await dayUsage()
      const first = top.toSorted((one, other) => other.used - one.used).slice(0, mostShown)
      return Promise.all(
        first.map(async ({ keyId, used, limit }) => {
          const key = await store.findKey(keyId)
          const subscriber = key && (await store.findSubscriber(key.subscriberId))
          return shown(key, keyId, subscriber?.name ?? null, used, limit)
        }),
      )
    }
    const found = async (): Promise<{ keys: PanelKey[]; isWhole: boolean }> => {
      const deadline = performance.now() + searchForMs
      const subscriberOf = subscribersOf(store)
      const text = foldName(wanted)
      const folded = new Map<string, string>()
      const total = await store.countKeys()
      const matching: { key: KeyRecord; name: string | null }[] = []
      let from = 0
      for (; from < total && matching.length < mostShown && performance.now() < deadline; from += keysRead) {
        for (const key of await store.listKeys(from, keysRead)) {
          const id = key.subscriberId
          const name = (await subscriberOf(id))?.name ?? null
          const foldedName = folded.getOrInsertComputed(id, () => foldName(name ?? ''))
          if (key.id.toLowerCase().includes(text) || foldedName.includes(text)) matching.push({ key, name })
        }
        await nextTurn()
      }
      const today = [calendar.dayOf(now())]
      const keys = await Promise.all(
        matching.map(async ({ key, name }) => {
          const [used = 0] = await store.usedOn(key.id, today)
          return shown(key, key.id, name, used)
        }),
      )
      return { keys, isWhole: from >= total && keys.length <= mostShown }
    }

    const { keys, isWhole } = wanted === '' ? { keys: await mostUsed(), isWhole: true } : await found()
    return { at: isoOf(now()), isWhole, keys: byUse(keys) }
  }
