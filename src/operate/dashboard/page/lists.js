// The lists of the status as tables: instances, the most requested places and keys, and keys near their limit.

import { unknown } from '../../../common/page/figures.js'
import { byId, element, setChildren } from './dom.js'
import { badge, placeLabel, shortHash, shortId } from './labels.js'

/** @typedef {import('./contract.ts').Status} Status */
/** @typedef {import('./labels.js').Words} Words */

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {boolean} [isNumber]
 */

/** @param {string} caption @param {readonly Column[]} columns @param {readonly (readonly (string | Node)[])[]} rows */
const table = (caption, columns, rows) =>
  element(
    'table',
    { class: 'figures' },
    element('caption', { class: 'unseen' }, caption),
    element(
      'thead',
      {},
      element(
        'tr',
        {},
        ...columns.map(({ title, isNumber }) =>
          element('th', { scope: 'col', class: isNumber && 'number' }, title),
        ),
      ),
    ),
    element(
      'tbody',
      {},
      ...rows.map(cells =>
        element(
          'tr',
          {},
          ...cells.map((cell, i) =>
            element(
              i === 0 ? 'th' : 'td',
              { scope: i === 0 && 'row', class: columns[i]?.isNumber && 'number' },
              cell,
            ),
          ),
        ),
      ),
    ),
  )

/** @param {HTMLElement} host @param {string} empty @param {boolean} isEmpty @param {() => HTMLElement} make */
const tableOr = (host, empty, isEmpty, make) =>
  setChildren(host, [isEmpty ? element('p', { class: 'empty' }, empty) : make()])

/** @param {string | null} phase @returns {phase is 'starting' | 'ready' | 'draining'} */
const isPhase = phase => phase === 'starting' || phase === 'ready' || phase === 'draining'

/** @param {Status} status @param {Words} words */
export const showLists = ({ instances, config, top, keysNearLimit, at }, { text, figures }) => {
  tableOr(byId('instances'), text('noInstances'), instances.length === 0, () =>
    table(
      text('instances'),
      [
        { title: text('instance') },
        { title: text('id') },
        { title: text('phase') },
        {
          title: text('requestsColumn').concat('/', figures.language === 'bn' ? 'সে.' : 's'),
          isNumber: true,
        },
        { title: text('hitShare'), isNumber: true },
        { title: text('memory'), isNumber: true },
        { title: text('startedAt'), isNumber: true },
        { title: text('version') },
        { title: text('configuration') },
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
        badge(
          isPhase(one.phase) ? text(one.phase) : (one.phase ?? unknown),
          one.phase === 'ready' ? 'good' : 'warn',
        ),
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
    ),
  )
  tableOr(byId('top-places'), text('noRequests'), top.places.length === 0, () =>
    table(
      text('topPlaces'),
      [{ title: text('place') }, { title: text('requestsOfLate'), isNumber: true }],
      top.places.map(place => [placeLabel(place, { text, figures }), figures.count(place.requests)]),
    ),
  )
  tableOr(byId('top-keys'), text('noRequests'), top.keys.length === 0, () =>
    table(
      text('topKeys'),
      [
        { title: text('key') },
        { title: text('requestsToday'), isNumber: true },
        { title: text('cellsLoaded'), isNumber: true },
      ],
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
    ),
  )
  const near = keysNearLimit ?? []
  tableOr(
    byId('near-limit'),
    text(keysNearLimit ? 'nobodyNearLimit' : 'nearLimitUnknown'),
    near.length === 0,
    () =>
      table(
        text('nearLimit'),
        [{ title: text('key') }, { title: text('subscriber') }, { title: text('used'), isNumber: true }],
        near.map(({ keyId, subscriber, tier, used, limit }) => [
          element('code', { title: tier }, keyId),
          subscriber ?? unknown,
          element(
            'span',
            {},
            text('usedOf', figures.count(used), figures.count(limit)),
            element('small', { class: 'detail' }, figures.share(limit > 0 ? used / limit : 1)),
          ),
        ]),
      ),
  )
}
