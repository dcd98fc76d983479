// Small helpers around the document.

/** @param {string} id @returns {any} */
export const byId = id => document.getElementById(id);

/** The first match of a selector. @param {string} selector @param {ParentNode} [within] @returns {any} */
export const one = (selector, within = document) => within.querySelector(selector);

/** All matches of a selector. @param {string} selector @param {ParentNode} [within] @returns {any[]} */
export const all = (selector, within = document) => [...within.querySelectorAll(selector)];

/** @param {string} kind @param {(event: any) => void} handler @param {boolean} [capture] */
export const on = (kind, handler, capture) => document.addEventListener(kind, handler, capture);

export const bodyClasses = document.body.classList;

/** @returns {any} */
export const focused = () => document.activeElement;

/** @param {Element} of */
export const rect = of => of.getBoundingClientRect();

/** @param {Record<string, string> | FormData} fields */
export const query = fields => new URLSearchParams(/** @type {any} */ (fields));

/**
 * Creates an element. Attributes that are properties of the element are set as such.
 * @param {string} name @param {Record<string, any>} [attributes] @param {...(Node | string)} children
 * @returns {any}
 */
export function element(name, attributes = {}, ...children) {
  /** @type {any} */
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in created) created[key] = value;
    else created.setAttribute(key, value);
  }
  created.append(...children);
  return created;
}

/** A copy of the content of a `<template>` in the page. @param {string} id @returns {any} */
export const copyTemplate = id => byId(id).content.firstElementChild.cloneNode(true);

/** The value of a form field. List fields are separated by the character in `data-list`. @param {any} field */
export function valueOf({ type, value, checked, dataset: { list } }) {
  if (type === "checkbox") return checked;
  // An empty number restores the default.
  if (type === "number") return value === "" ? null : Number(value);
  if (!list) return value;
  return value.split(list).map((/** @type {string} */ item) => item.trim()).filter(Boolean);
}

/** The values of all named fields below an element. @param {ParentNode} form */
export function fieldsOf(form) {
  const fields = all("[name]", form).filter(({ type, checked }) => type !== "radio" || checked);
  return Object.fromEntries(fields.map(field => [field.name, valueOf(field)]));
}
