// The files that the gateways of a history read, which its steps replace: a catalogue in which one place is renamed, and a
// certificate. A gateway that starts reads what is there then.

import { X509Certificate } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { composeSnapshot, formatSnapshot } from '../../src/catalogue/snapshot.ts'
import { inspectSnapshot } from '../../src/catalogue/snapshot-reader.ts'
import { smallCatalogue } from '../../test/support/usual-catalogue.ts'
import type { Place } from '../history.ts'
import type { Settings } from '../steps.ts'
import { renamedPlace } from '../steps.ts'

export type FleetFiles = {
  readonly settings: Settings
  /** The places at the begin. */
  readonly places: readonly Place[]
  /** Gives the place another name. */
  rename(name: string): void
  /** Puts the other certificate in place. Returns its fingerprint. */
  renew(): string
}

const fixture = (name: string): string => new URL(`../../test/fixtures/${name}`, import.meta.url).pathname
const certificates = ['localhost', 'renewed'] as const
const { snapshot } = inspectSnapshot(readFileSync(await smallCatalogue(), 'utf8'))
if (!snapshot) throw new Error('the small catalogue has faults')
const { provenance, locations } = snapshot
const places = locations
  .filter(({ published }) => published)
  .map(
    ({ id, type, parentId, name_en, name_bn, slug_en, latitude, longitude, ...more }): Place => ({
      ...{ id, type, parentId, name_en, name_bn, slug_en, latitude, longitude },
      ...{ population: more.population, area_sq_km: more.area_sq_km },
      ...{ website: more.website, aliases: more.aliases },
    }),
  )

/** @param isTls whether gateways speak TLS */
export const openFiles = (folder: string, isTls: boolean): FleetFiles => {
  const [catalogue, cert, key] = ['places.json', 'tls.crt', 'tls.key'].map(name => join(folder, name)) as [
    string,
    string,
    string,
  ]
  let renewals = 0
  const put = (path: string, content: string | Buffer): void => {
    writeFileSync(`${path}.new`, content, { mode: 0o600 })
    renameSync(`${path}.new`, path)
  }
  const rename = (name: string | undefined): void => {
    const next = locations.map(place =>
      place.id === renamedPlace && name !== undefined ? { ...place, name_en: name } : place,
    )
    put(catalogue, formatSnapshot(composeSnapshot(provenance, next)))
  }
  const renew = (): string => {
    const name = certificates[renewals++ % certificates.length]
    put(key, readFileSync(fixture(`${name}.key`)))
    const bytes = readFileSync(fixture(`${name}.crt`))
    put(cert, bytes)
    return new X509Certificate(bytes).fingerprint256
  }
  rename(undefined)
  return {
    settings: {
      'catalogue.path': catalogue,
      ...(isTls && { 'server.tls.cert': cert, 'server.tls.key': key }),
    },
    places,
    rename,
    renew,
  }
}
