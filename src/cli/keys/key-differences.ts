// Differences between the file of `keys create --from` and existing keys, which --apply changes. An empty field changes nothing.

import { counted } from '../../command-line/terminal.ts'
import type { Administration, CreatedKey, KeyRequest } from '../../keys/administration.ts'
import { termsIn } from '../../keys/key-terms.ts'
import { nameForm } from '../../keys/name-forms.ts'
import { termsText } from './term-options.ts'

const maxListed = 10

export const createKeyDifferences = (
  administration: Pick<Administration, 'setKey'>,
  requests: readonly KeyRequest[],
  isApplied: boolean,
) => {
  const byExternalId = new Map(requests.map(request => [bare(request.externalId), request]))
  const listed: string[] = []
  let count = 0
  return {
    /** A key as it is afterwards: changed only with --apply. @throws InputError, StoreError */
    settle: async (created: CreatedKey): Promise<CreatedKey> => {
      const wanted = created.existed ? byExternalId.get(bare(created.externalId ?? undefined)) : undefined
      if (!wanted) return created
      const { id } = created
      const { tier, limit, restrictions, rates } = wanted
      const given = { restrictions, rates }
      const terms = { ...created, ...termsIn(given, created) }
      const parts: string[] = []
      if (tier !== created.tier) parts.push(`tier ${created.tier}, in the file ${tier}`)
      if (limit !== undefined && limit !== created.limit)
        parts.push(`limit ${created.limit ?? 'none'}, in the file ${limit}`)
      const [termsBefore, termsAfter] = [termsText(created), termsText(terms)]
      if (termsBefore !== termsAfter) parts.push(`terms ${termsBefore}, in the file ${termsAfter}`)
      if (parts.length === 0) return created
      const list = (): void => {
        count += 1
        if (listed.length < maxListed) listed.push(`${id} (${parts.join('; ')})`)
      }
      if (!isApplied) {
        list()
        return created
      }
      const moved =
        tier === created.tier && termsBefore === termsAfter
          ? created
          : await administration.setKey(id, { tier, ...given })
      // A new tier may have another limit than the file.
      const isLimitLeft = limit !== undefined && limit !== moved.limit
      const { limit: now } = isLimitLeft ? await administration.setKey(id, { limit }) : moved
      list()
      return { ...terms, tier, limit: now }
    },
    text: (): string => {
      if (count === 0) return ''
      const more = count > listed.length ? [`and ${counted(count - listed.length)} more`] : []
      const which = [...listed, ...more].join(', ')
      return isApplied
        ? ` Changed as the file says: ${which}.`
        : ` Not changed, though the file says otherwise: ${which}. The same command with --apply changes them.`
    },
  }
}

const bare = (externalId = ''): string => nameForm(externalId)
