// Publishes or unpublishes one place: changes one line and the checksum, which a running gateway notices.

import { show } from 'abohawa/catalogue/field-rules.ts'
import type { Location } from 'abohawa/catalogue/location-schema.ts'
import { composeSnapshot, formatSnapshot } from 'abohawa/catalogue/snapshot.ts'
import { readSnapshot } from 'abohawa/catalogue/snapshot-reader.ts'
import { InputError } from 'abohawa/common/errors.ts'
import { editExclusively } from './exclusive-edit.ts'

/** The place as it is now, and whether this call changed it. */
export type Publication = Readonly<{ changed: boolean; location: Location }>

/** Sets whether a place is published; InputError for an unknown id, a faulty snapshot or an edit under way. */
export const setPublished = async (path: string, id: string, published: boolean): Promise<Publication> => {
  let location: Location | undefined
  const changed = await editExclusively(path, async () => {
    const { provenance, locations } = await readSnapshot(path)
    const found = locations.find(candidate => candidate.id === id)
    if (found === undefined)
      throw new InputError(`the id must be one of the ${locations.length} places in ${path}, got ${show(id)}`)
    location = Object.freeze({ ...found, published })
    if (found.published === published) return undefined
    const changed = location
    return formatSnapshot(
      composeSnapshot(
        provenance,
        locations.map(candidate => (candidate === found ? changed : candidate)),
      ),
    )
  })
  return { changed, location: location as Location }
}
