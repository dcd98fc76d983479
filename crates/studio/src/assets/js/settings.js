// Fields of the settings: saved when the user leaves them; until then the window remembers them.

import { trySend } from "./api.js";
import { valueOf } from "./dom.js";
import { take, thread } from "./page.js";
import { fieldKey, perWindow } from "./storage.js";

/** @param {any} field */
export async function saveField(field) {
  const path = `/api/fields/${field.name}?thread=${thread}&take=${take}`;
  if (await trySend("PUT", path, { value: valueOf(field) })) perWindow.removeItem(fieldKey(field));
}

/** @param {any} field */
export const rememberField = field =>
  perWindow.setItem(fieldKey(field), JSON.stringify([field.defaultValue, field.value]));
