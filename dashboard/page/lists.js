// The lists of the status as tables: instances, the most requested places and keys, and keys near their limit.

import { unknown } from '../../src/common/page/figures.js'
import { byId, element, setChildren } from './dom.js'
import { badge, circuitTones, placeLabel, shortHash, shortId } from './labels.js'

/** @typedef {import('./contract.ts').Status} Status */
/** @typedef {import('./labels.js').Words} Words */

/** @typedef {[title: string, kind?: 'number']} Column */

/**
 * Shows rows as a table, or says why there are none.
 * @param {string} id of its place @param {string} caption @param {string} empty
 * @param {readonly Column[]} columns @param {readonly (readonly (string | Node)[])[]} rows
 */
export const showTable = (id, caption, empty, columns, rows) => {
  const heads = columns.map(([title, kind]) => element('th', { scope: 'col', class: kind }, title))
  /** @param {readonly (string | Node)[]} cells */
  const row = ([first, ...others]) =>
    element(
      'tr',
      {},
      element('th', { scope: 'row', class: columns[0]?.[1] }, first),
      ...others.map((cell, i) => element('td', { class: columns[i + 1]?.[1] }, cell)),
    )
  const table = element(
    'table',
    { class: 'figures' },
    element('caption', { class: 'unseen' }, caption),
    element('thead', {}, element('tr', {}, ...heads)),
    element('tbody', {}, ...rows.map(row)),
  )
  setChildren(byId(id), [rows.length === 0 ? element('p', { class: 'empty' }, empty) : table])
}

/** The circuit of an instance, and below it each outage that it sees, and its errors of late. @param {Status['instances'][number]} one @param {string} at @param {Words} words */
const circuitOf = ({ circuit, outages, recentErrors }, at, { text, figures }) =>
  element(
    'span',
    { class: 'stack' },
    circuit === null ? unknown : badge(text(circuit), circuitTones[circuit]),
    ...(outages ?? []).map(({ outage, since }) =>
      badge(text('outSince', text(outage), figures.instant(since, at)), 'bad'),
    ),
    recentErrors !== null &&
      element('small', { class: 'detail' }, text('recentErrors', figures.count(recentErrors))),
  )

/** @param {Status} status @param {Words} words */
export const showLists = ({ instances, config, top, keysNearLimit, at }, { text, figures }) => {
  showTable(
    'instances',
    text('instances'),
    // There is at least the one that answers.
    '',
    [
      [text('instance')],
      [text('id')],
      [text('phase')],
      [text('circuit')],
      [text('perSecond'), 'number'],
      [text('hitShare'), 'number'],
      [text('memory'), 'number'],
      [text('startedAt'), 'number'],
      [text('version')],
      [text('configuration')],
    ],
    instances.map(one => [
      element(
        'span',
        {},
        `${one.host ?? one.id}${one.pid === null ? '' : ` · ${one.pid}`}`,
        one.isSelf && ' ',
        one.isSelf && element('em', {}, text('thisOne')),
      ),
      element('code', { title: one.id }, shortId(one.id)),
      badge(one.phase === null ? unknown : text(one.phase), one.phase === 'ready' ? 'good' : 'warn'),
      circuitOf(one, at, { text, figures }),
      figures.measured(one.requestsPerSecond),
      figures.share(one.hitShare),
      figures.bytes(one.memoryBytes),
      figures.instant(one.startedAt, at),
      one.version ?? unknown,
      element(
        'span',
        { class: 'hash' },
        element('code', { title: one.configHash }, shortHash(one.configHash)),
        config.differs.includes(one.id) && badge(text('isDifferent'), 'warn'),
      ),
    ]),
  )
  showTable(
    'top-places',
    text('topPlaces'),
    text('noRequests'),
    [[text('place')], [text('requestsOfLate'), 'number']],
    top.places.map(place => [placeLabel(place, { text, figures }), figures.count(place.requests)]),
  )
  showTable(
    'top-keys',
    text('topKeys'),
    text('noRequests'),
    [[text('key')], [text('requestsToday'), 'number'], [text('cellsLoaded'), 'number']],
    top.keys.map(({ keyId, requests, cellsLoaded, shareOfDay }) => [
      element('code', {}, keyId),
      figures.count(requests),
      element(
        'span',
        {},
        figures.count(cellsLoaded),
        cellsLoaded > 0 &&
          shareOfDay !== null &&
          element('small', { class: 'detail' }, text('shareOfDay', figures.share(shareOfDay))),
      ),
    ]),
  )
  showTable(
    'near-limit',
    text('nearLimit'),
    text(keysNearLimit ? 'nobodyNearLimit' : 'nearLimitUnknown'),
    [[text('key')], [text('subscriber')], [text('used'), 'number']],
    (keysNearLimit ?? []).map(({ keyId, subscriber, tier, used, limit }) => [
      element('code', { title: tier }, keyId),
      subscriber ?? unknown,
      element(
        'span',
        {},
        text('usedOf', figures.count(used), figures.count(limit)),
        element('small', { class: 'detail' }, figures.share(limit > 0 ? used / limit : 1)),
      ),
    ]),
  )
}
