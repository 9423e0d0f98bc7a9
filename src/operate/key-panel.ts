// The keys on the dashboard: those with most requests today, or a search's. Hours and refusals are of this gateway.

import { type Calendar, isoOf, isoOrNull } from '../common/calendar.ts'
import { limitOfTier, type Tiers } from '../keys/authentication.ts'
import type { KeyActivities } from '../keys/key-activity.ts'
import { allKeysWithSubscribers } from '../keys/keys-with-subscribers.ts'
import { foldName } from '../keys/name-forms.ts'
import type { KeyRecord, KeyWithSubscriber, Store } from '../stores/store.ts'
import type { DayUsage } from './day-usage.ts'
import type { KeyPanelReport, PanelKey } from './reports/key-panel-report.ts'

const mostShown = 50
// A longer search stops, and reports that it is incomplete.
const searchForMs = 5_000

type Parts = {
  readonly store: Pick<Store, 'findKey' | 'findSubscriber' | 'keysWithSubscribers' | 'usedOn'>
  readonly dayUsage: () => Promise<DayUsage>
  readonly activities: Pick<KeyActivities, 'of'>
  /** The current tiers. */
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
      const text = foldName(wanted)
      const matching: KeyWithSubscriber[] = []
      let isWhole = true
      for await (const part of allKeysWithSubscribers(store)) {
        for (const held of part)
          if (held.id.toLowerCase().includes(text) || foldName(held.subscriber ?? '').includes(text))
            matching.push(held)
        isWhole = matching.length <= mostShown && performance.now() < deadline
        if (!isWhole) break
      }
      const today = [calendar.dayOf(now())]
      const keys = await Promise.all(
        matching.slice(0, mostShown).map(async ({ id, subscriber }) => {
          const [key, [used = 0]] = await Promise.all([store.findKey(id), store.usedOn(id, today)])
          return shown(key, id, subscriber, used)
        }),
      )
      return { keys, isWhole }
    }

    const { keys, isWhole } = wanted === '' ? { keys: await mostUsed(), isWhole: true } : await found()
    return { at: isoOf(now()), isWhole, keys: byUse(keys) }
  }
