-- Everything that Lazulite keeps in PostgreSQL, in a schema of its own. See docs/decisions/0016-postgres.md.
CREATE SCHEMA IF NOT EXISTS {schema};

-- Which format this is. A server refuses formats that are newer than its own.
CREATE TABLE {schema}.meta (one boolean PRIMARY KEY DEFAULT true CHECK (one), format integer NOT NULL);

-- Versions: `versions` counts, and accepts only what is below `version_limit`. See next_version.
CREATE SEQUENCE {schema}.versions;
CREATE SEQUENCE {schema}.version_limit;
CREATE SEQUENCE {schema}.table_ids START 16;

-- One row per placement unit, which is a whole table today. No row: the table is gone. `place` says where its rows are: 0 is
-- `rows`, which small tables share, and n is `rows_n`, which one table has for itself. `moves_to`: the rows are being copied
-- there, and whoever changes one notes its key in `changed_keys`. `is_frozen`: nobody changes any. Every change of a unit raises
-- its epoch.
CREATE TABLE {schema}.fences (
    table_id bigint PRIMARY KEY,
    epoch bigint NOT NULL,
    place bigint NOT NULL,
    moves_to bigint,
    is_frozen boolean NOT NULL DEFAULT false
);
CREATE INDEX fences_that_move ON {schema}.fences (table_id) WHERE moves_to IS NOT NULL;

-- The relations of their own, and for which table they were made. `leaves_rows`: the table lives there, and `rows` still holds
-- what it left behind.
CREATE SEQUENCE {schema}.place_numbers;
CREATE TABLE {schema}.places (
    place bigint PRIMARY KEY,
    table_id bigint NOT NULL,
    leaves_rows boolean NOT NULL DEFAULT false
);
CREATE TABLE {schema}.changed_keys (table_id bigint NOT NULL, pk bytea NOT NULL, rk bytea NOT NULL);

-- The keys are the engine's own bytes, which sort as the service lists. The stamp is chosen by the front end, once for every
-- commit: whoever loses the connection finds out by it whether the commit happened.
CREATE TABLE {schema}.rows (
    table_id bigint NOT NULL,
    version bigint NOT NULL,
    stamp bigint NOT NULL,
    pk bytea NOT NULL,
    rk bytea NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (table_id, pk, rk)
);
ALTER TABLE {schema}.rows ALTER pk SET STORAGE PLAIN, ALTER rk SET STORAGE PLAIN, ALTER body SET STORAGE EXTERNAL;

-- Keys of more than 2,600 bytes do not fit into an entry of a btree. They are unique by their digest and sorted by their head.
CREATE TABLE {schema}.long_rows (
    table_id bigint NOT NULL,
    version bigint NOT NULL,
    stamp bigint NOT NULL,
    digest bytea NOT NULL,
    head bytea NOT NULL,
    pk bytea NOT NULL,
    rk bytea NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (table_id, digest)
);
ALTER TABLE {schema}.long_rows ALTER head SET STORAGE PLAIN, ALTER pk SET STORAGE EXTERNAL,
    ALTER rk SET STORAGE EXTERNAL, ALTER body SET STORAGE EXTERNAL;
CREATE INDEX long_rows_in_order ON {schema}.long_rows (table_id, head);

-- Tables whose rows are still to be removed, with the stamp of the commit that dropped them.
CREATE TABLE {schema}.dropped (
    table_id bigint PRIMARY KEY,
    stamp bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A version that is greater than all before, and not below the time that the caller gives, but for less than a millisecond.
--
-- Nobody waits here, because a lock that every commit takes would be the slowest part of it. `versions` counts on; once in a
-- millisecond somebody sets it to the present time. What was drawn is accepted only below the limit that was read before: a
-- number that was drawn before the jump is below the old limit, and the jump starts at or above it. So no number is accepted
-- twice, however long anybody is interrupted between two steps.
CREATE FUNCTION {schema}.next_version(now_ticks bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ceiling bigint := coalesce(pg_sequence_last_value('{schema}.version_limit'), 0);
    drawn bigint;
BEGIN
    IF now_ticks < ceiling OR NOT pg_try_advisory_lock({lock_class}, 1) THEN
        drawn := nextval('{schema}.versions');
        IF drawn < ceiling THEN
            RETURN drawn;
        END IF;
        PERFORM pg_advisory_lock({lock_class}, 1);
    END IF;
    ceiling := coalesce(pg_sequence_last_value('{schema}.version_limit'), 0);
    drawn := nextval('{schema}.versions');
    IF now_ticks >= ceiling OR drawn >= ceiling THEN
        drawn := greatest(now_ticks, ceiling, 1);
        PERFORM setval('{schema}.versions', drawn);
        PERFORM setval('{schema}.version_limit', drawn + 10000);
    END IF;
    PERFORM pg_advisory_unlock({lock_class}, 1);
    RETURN drawn;
END $$;

-- All later versions are greater than this one.
CREATE FUNCTION {schema}.raise_versions(until bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    ceiling bigint;
BEGIN
    PERFORM pg_advisory_lock({lock_class}, 1);
    ceiling := coalesce(pg_sequence_last_value('{schema}.version_limit'), 0);
    -- Whatever is accepted from now on is at or above the start of the present millisecond.
    IF until >= ceiling - 10000 THEN
        PERFORM setval('{schema}.versions', greatest(until, ceiling, 1));
        PERFORM setval('{schema}.version_limit', greatest(until, ceiling, 1) + 10000);
    END IF;
    PERFORM pg_advisory_unlock({lock_class}, 1);
END $$;

{commit_rows}
-- A commit of rows that are in several places, or in a table that is being copied: what commit_rows does, with statements that
-- are made for it. The physical rows have one order for all: by place and then by key.
CREATE FUNCTION {schema}.commit_rows_in_places(
    now_ticks bigint, new_stamp bigint, fenced bigint[], has_long boolean,
    tables bigint[], pks bytea[], rks bytea[], expects integer[], versions bigint[], effects integer[], bodies bytea[],
    OUT outcome integer, OUT op integer, OUT found_version bigint, OUT new_version bigint
) LANGUAGE plpgsql AS $$
DECLARE
    op_count integer := cardinality(tables);
    founds bigint[] := array_fill(NULL::bigint, ARRAY[op_count]);
    -- Of each op. Long keys are in one relation, whatever the place of their table is: -1, which comes last.
    op_places bigint[];
    all_places bigint[];
    one_place bigint;
    relation text;
    is_copied boolean;
    is_halted boolean;
    appeared integer;
    insert_count integer := 0;
    done_count integer;
    seen record;
    holds boolean;
BEGIN
    -- Before the fences are read, as in commit_rows.
    LOCK TABLE {schema}.rows IN ROW EXCLUSIVE MODE;
    -- One statement, so that place and marks are of one moment.
    SELECT array_agg(f.place ORDER BY o.n), bool_or(f.moves_to IS NOT NULL), bool_or(f.is_frozen)
    INTO op_places, is_copied, is_halted
    FROM unnest(tables) WITH ORDINALITY AS o(t, n)
    LEFT JOIN LATERAL (
        SELECT f.place, f.moves_to, f.is_frozen FROM {schema}.fences f WHERE f.table_id = o.t OFFSET 0
    ) f ON true;
    IF array_position(op_places, NULL) IS NOT NULL OR is_halted THEN
        outcome := CASE WHEN array_position(op_places, NULL) IS NOT NULL THEN 2 ELSE 4 END;
        RETURN;
    END IF;
    FOR n IN 1 .. op_count LOOP
        IF octet_length(pks[n]) + octet_length(rks[n]) > 2600 THEN
            op_places[n] := -1;
        END IF;
    END LOOP;
    SELECT array_agg(DISTINCT p ORDER BY p) INTO all_places FROM unnest(op_places) AS p WHERE p >= 0;
    FOREACH one_place IN ARRAY coalesce(all_places, ARRAY[]::bigint[]) LOOP
        relation := '{schema}.' || CASE one_place WHEN 0 THEN 'rows' ELSE 'rows_' || one_place END;
        FOR seen IN EXECUTE format(
            'SELECT o.n, r.version
             FROM (SELECT * FROM unnest($1, $2, $3, $4) WITH ORDINALITY AS u(p, t, pk, rk, n) WHERE p = $5
                   ORDER BY t, pk, rk) o
             CROSS JOIN LATERAL (
                SELECT r.version FROM %s r WHERE r.table_id = o.t AND r.pk = o.pk AND r.rk = o.rk FOR UPDATE
             ) r', relation)
            USING op_places, tables, pks, rks, one_place
        LOOP
            founds[seen.n] := seen.version;
        END LOOP;
    END LOOP;
    IF has_long THEN
        FOR seen IN
            SELECT o.n, r.version
            FROM (
                SELECT t, sha256(pk || '\x00'::bytea || rk) AS digest, n
                FROM unnest(op_places, tables, pks, rks) WITH ORDINALITY AS u(p, t, pk, rk, n)
                WHERE p = -1 ORDER BY 1, 2
            ) o
            CROSS JOIN LATERAL (
                SELECT r.version FROM {schema}.long_rows r WHERE r.table_id = o.t AND r.digest = o.digest FOR UPDATE
            ) r
        LOOP
            founds[seen.n] := seen.version;
        END LOOP;
    END IF;
    FOR n IN 1 .. op_count LOOP
        holds := CASE expects[n] WHEN 0 THEN true WHEN 1 THEN founds[n] IS NULL
                 WHEN 2 THEN founds[n] IS NOT NULL ELSE coalesce(founds[n] = versions[n], false) END;
        IF NOT holds THEN
            -- As in commit_rows.
            outcome := 1;
            FOREACH one_place IN ARRAY coalesce(all_places, ARRAY[0]::bigint[]) LOOP
                EXECUTE format(
                    'SELECT 3 WHERE {schema}.any_appeared_in_%s(
                        (SELECT array_agg(CASE WHEN p IN (-1, $5) THEN t END ORDER BY n)
                         FROM unnest($1, $2) WITH ORDINALITY AS o(p, t, n)), $3, $4, $6)',
                    CASE one_place WHEN 0 THEN 'rows' ELSE 'rows_' || one_place END)
                    INTO appeared USING op_places, tables, pks, rks, one_place, founds;
                outcome := coalesce(appeared, outcome);
            END LOOP;
            op := n - 1;
            found_version := founds[n];
            RETURN;
        END IF;
        IF founds[n] IS NULL THEN
            insert_count := insert_count + 1;
        END IF;
    END LOOP;
    IF is_copied THEN
        -- Those of tables that are not copied are nobody's, and are removed with the others.
        INSERT INTO {schema}.changed_keys SELECT o.t, o.pk, o.rk
        FROM unnest(tables, pks, rks, effects, op_places) AS o(t, pk, rk, effect, p) WHERE o.effect < 2 AND o.p = 0;
    END IF;
    new_version := {schema}.next_version(now_ticks);
    BEGIN
        FOREACH one_place IN ARRAY coalesce(all_places, ARRAY[]::bigint[]) LOOP
            relation := '{schema}.' || CASE one_place WHEN 0 THEN 'rows' ELSE 'rows_' || one_place END;
            EXECUTE format(
                'INSERT INTO %s (table_id, version, stamp, pk, rk, body)
                 SELECT o.t, $7, $8, o.pk, o.rk, coalesce(o.body, '''')
                 FROM unnest($1, $2, $3, $4, $5, $6) AS o(p, t, pk, rk, body, found)
                 WHERE o.p = $9 AND o.found IS NULL
                 ORDER BY o.t, o.pk, o.rk
                 ON CONFLICT DO NOTHING', relation)
                USING op_places, tables, pks, rks, bodies, founds, new_version, new_stamp, one_place;
            GET DIAGNOSTICS done_count = ROW_COUNT;
            insert_count := insert_count - done_count;
        END LOOP;
        IF has_long THEN
            INSERT INTO {schema}.long_rows (table_id, version, stamp, digest, head, pk, rk, body)
            SELECT o.t, new_version, new_stamp, sha256(o.pk || '\x00'::bytea || o.rk),
                   substr(o.pk || '\x00'::bytea || o.rk, 1, 1024), o.pk, o.rk, coalesce(o.body, '')
            FROM unnest(op_places, tables, pks, rks, bodies, founds) AS o(p, t, pk, rk, body, found)
            WHERE o.p = -1 AND o.found IS NULL
            ORDER BY o.t, 4
            ON CONFLICT DO NOTHING;
            GET DIAGNOSTICS done_count = ROW_COUNT;
            insert_count := insert_count - done_count;
        END IF;
        IF insert_count > 0 THEN
            RAISE EXCEPTION USING ERRCODE = 'LZ001';
        END IF;
    EXCEPTION WHEN SQLSTATE 'LZ001' THEN
        outcome := 3;
        RETURN;
    END;
    FOR n IN 1 .. op_count LOOP
        CONTINUE WHEN effects[n] = CASE WHEN founds[n] IS NULL THEN 0 ELSE 2 END;
        relation := '{schema}.' || CASE op_places[n] WHEN -1 THEN 'long_rows' WHEN 0 THEN 'rows' ELSE 'rows_' || op_places[n] END;
        EXECUTE format(
            CASE effects[n]
                WHEN 0 THEN 'UPDATE %s r SET version = $4, stamp = $5, body = $6 WHERE r.table_id = $1 AND '
                ELSE 'DELETE FROM %s r WHERE r.table_id = $1 AND '
            END || CASE op_places[n]
                WHEN -1 THEN 'r.digest = sha256($2 || ''\x00''::bytea || $3)'
                ELSE 'r.pk = $2 AND r.rk = $3'
            END, relation)
            USING tables[n], pks[n], rks[n], new_version, new_stamp, bodies[n];
    END LOOP;
    outcome := 0;
END $$;

-- Rows with the versions that they had elsewhere. 0 done, 2 the table is gone, 4 it is frozen.
CREATE FUNCTION {schema}.load_rows(
    to_table bigint, until bigint, pks bytea[], rks bytea[], versions bigint[], bodies bytea[]
) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    fence record;
BEGIN
    -- Before the fence is read, as in commit_rows.
    LOCK TABLE {schema}.rows IN ROW EXCLUSIVE MODE;
    SELECT f.place, f.moves_to, f.is_frozen INTO fence FROM {schema}.fences f WHERE f.table_id = to_table;
    IF NOT FOUND OR fence.is_frozen THEN
        RETURN CASE WHEN fence.place IS NULL THEN 2 ELSE 4 END;
    END IF;
    IF fence.moves_to IS NOT NULL THEN
        INSERT INTO {schema}.changed_keys SELECT to_table, o.pk, o.rk FROM unnest(pks, rks) AS o(pk, rk)
        WHERE octet_length(o.pk) + octet_length(o.rk) <= 2600;
    END IF;
    -- First, so that no later version can come before the rows.
    PERFORM {schema}.raise_versions(until);
    EXECUTE format(
        'INSERT INTO {schema}.%s (table_id, version, stamp, pk, rk, body)
         SELECT $1, o.version, 0, o.pk, o.rk, o.body
         FROM unnest($2, $3, $4, $5) AS o(pk, rk, version, body)
         WHERE octet_length(o.pk) + octet_length(o.rk) <= 2600
         ORDER BY o.pk, o.rk
         ON CONFLICT (table_id, pk, rk) DO UPDATE SET version = excluded.version, stamp = 0, body = excluded.body',
        CASE fence.place WHEN 0 THEN 'rows' ELSE 'rows_' || fence.place END)
        USING to_table, pks, rks, versions, bodies;
    INSERT INTO {schema}.long_rows (table_id, version, stamp, digest, head, pk, rk, body)
    SELECT to_table, o.version, 0, sha256(o.pk || '\x00'::bytea || o.rk),
           substr(o.pk || '\x00'::bytea || o.rk, 1, 1024), o.pk, o.rk, o.body
    FROM unnest(pks, rks, versions, bodies) AS o(pk, rk, version, body)
    WHERE octet_length(o.pk) + octet_length(o.rk) > 2600
    ORDER BY 4
    ON CONFLICT (table_id, digest) DO UPDATE SET version = excluded.version, stamp = 0, body = excluded.body;
    RETURN 0;
END $$;

-- The id at the start of a record of the catalogue.
CREATE FUNCTION {schema}.record_id(body bytea) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT ('x' || encode(substr(body, 1, 8), 'hex'))::bit(64)::bigint $$;

-- The verbs of the catalogue, whose rows are those of table 0. The outcomes are those of commit_rows.
CREATE FUNCTION {schema}.create_table(
    now_ticks bigint, new_stamp bigint, path_pk bytea, path_rk bytea, family bigint, payload bytea,
    OUT outcome integer, OUT op integer, OUT found_version bigint, OUT id bigint
) LANGUAGE plpgsql AS $$
BEGIN
    op := 0;
    SELECT r.version INTO found_version FROM {schema}.rows r WHERE r.table_id = 0 AND r.pk = path_pk AND r.rk = path_rk;
    IF found_version IS NOT NULL THEN
        outcome := 1;
        RETURN;
    END IF;
    id := family | nextval('{schema}.table_ids');
    INSERT INTO {schema}.rows (table_id, version, stamp, pk, rk, body)
    VALUES (0, {schema}.next_version(now_ticks), new_stamp, path_pk, path_rk, int8send(id) || payload)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        outcome := 3;
        RETURN;
    END IF;
    INSERT INTO {schema}.fences (table_id, epoch, place) VALUES (id, 1, 0);
    outcome := 0;
END $$;

CREATE FUNCTION {schema}.drop_table(
    now_ticks bigint, new_stamp bigint, path_pk bytea, path_rk bytea,
    OUT outcome integer, OUT op integer, OUT found_version bigint, OUT id bigint
) LANGUAGE plpgsql AS $$
BEGIN
    op := 0;
    DELETE FROM {schema}.rows r WHERE r.table_id = 0 AND r.pk = path_pk AND r.rk = path_rk
    RETURNING {schema}.record_id(r.body) INTO id;
    IF id IS NULL THEN
        outcome := 1;
        RETURN;
    END IF;
    PERFORM {schema}.next_version(now_ticks);
    DELETE FROM {schema}.fences f WHERE f.table_id = id;
    INSERT INTO {schema}.dropped (table_id, stamp) VALUES (id, new_stamp);
    outcome := 0;
END $$;

CREATE FUNCTION {schema}.rename_table(
    now_ticks bigint, new_stamp bigint, from_pk bytea, from_rk bytea, to_pk bytea, to_rk bytea, payload bytea,
    OUT outcome integer, OUT op integer, OUT found_version bigint, OUT id bigint
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT {schema}.record_id(r.body) INTO id FROM {schema}.rows r
    WHERE r.table_id = 0 AND r.pk = from_pk AND r.rk = from_rk FOR UPDATE;
    IF id IS NULL THEN
        outcome := 1;
        op := 0;
        RETURN;
    END IF;
    INSERT INTO {schema}.rows (table_id, version, stamp, pk, rk, body)
    VALUES (0, {schema}.next_version(now_ticks), new_stamp, to_pk, to_rk, int8send(id) || payload)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        SELECT r.version INTO found_version FROM {schema}.rows r WHERE r.table_id = 0 AND r.pk = to_pk AND r.rk = to_rk;
        outcome := CASE WHEN found_version IS NULL THEN 3 ELSE 1 END;
        op := 1;
        RETURN;
    END IF;
    DELETE FROM {schema}.rows r WHERE r.table_id = 0 AND r.pk = from_pk AND r.rk = from_rk;
    outcome := 0;
END $$;

CREATE FUNCTION {schema}.replace_table(
    now_ticks bigint, new_stamp bigint, path_pk bytea, path_rk bytea, expect integer, expected bigint, payload bytea,
    drops_rows boolean, OUT outcome integer, OUT op integer, OUT found_version bigint, OUT id bigint
) LANGUAGE plpgsql AS $$
DECLARE
    old_id bigint;
BEGIN
    op := 0;
    SELECT r.version, {schema}.record_id(r.body) INTO found_version, id FROM {schema}.rows r
    WHERE r.table_id = 0 AND r.pk = path_pk AND r.rk = path_rk FOR UPDATE;
    IF found_version IS NULL OR expect = 1 OR (expect = 3 AND found_version <> expected) THEN
        outcome := 1;
        RETURN;
    END IF;
    IF drops_rows THEN
        old_id := id;
        id := (old_id & (255::bigint << 56)) | nextval('{schema}.table_ids');
        DELETE FROM {schema}.fences f WHERE f.table_id = old_id;
        INSERT INTO {schema}.fences (table_id, epoch, place) VALUES (id, 1, 0);
        INSERT INTO {schema}.dropped (table_id, stamp) VALUES (old_id, new_stamp);
    END IF;
    UPDATE {schema}.rows r
    SET version = {schema}.next_version(now_ticks), stamp = new_stamp, body = int8send(id) || payload
    WHERE r.table_id = 0 AND r.pk = path_pk AND r.rk = path_rk;
    outcome := 0;
END $$;

-- Moves: a table leaves `rows` for a relation that was made for it. Only one mover at a time, by a lock that its session holds.
--
-- 1. begin_move marks the fence. From then on writers of this table note in `changed_keys` what they change.
-- 2. The mover copies the table, and then, again and again, what was changed meanwhile (copy_changes).
-- 3. end_move stops the writers, copies the rest, and sets the new place.
--
-- After a mark, those are waited for that may not have seen it. A statement takes its lock in the relation first and looks at
-- the fence afterwards, so whoever holds no lock by now will see the mark. Readers are not waited for.
CREATE FUNCTION {schema}.wait_for_writers() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    writers text[];
BEGIN
    SELECT coalesce(array_agg(l.virtualtransaction), ARRAY[]::text[]) INTO writers FROM pg_locks l
    WHERE l.locktype = 'relation' AND l.granted AND l.relation = '{schema}.rows'::regclass
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
      AND l.mode IN ('RowShareLock', 'RowExclusiveLock') AND l.pid <> pg_backend_pid();
    WHILE EXISTS (SELECT FROM pg_locks l WHERE l.virtualtransaction = ANY (writers)) LOOP
        PERFORM pg_sleep(0.002);
    END LOOP;
END $$;

-- False: the table is gone, or not in `rows`.
CREATE PROCEDURE {schema}.begin_move(moved bigint, to_place bigint, INOUT is_begun boolean) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE {schema}.fences f SET moves_to = to_place, epoch = epoch + 1
    WHERE f.table_id = moved AND f.place = 0 AND f.moves_to IS NULL;
    is_begun := FOUND;
    COMMIT;
    PERFORM {schema}.wait_for_writers();
END $$;

-- Copies the present state of up to `count_max` keys that were changed, and forgets them. A key that is changed again is noted
-- again. Returns how many there were.
CREATE FUNCTION {schema}.copy_changes(moved bigint, to_place bigint, count_max bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    all_pks bytea[];
    all_rks bytea[];
BEGIN
    WITH taken AS (
        DELETE FROM {schema}.changed_keys WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM {schema}.changed_keys WHERE table_id = moved LIMIT count_max)) RETURNING pk, rk
    )
    SELECT array_agg(pk), array_agg(rk) INTO all_pks, all_rks FROM taken;
    IF all_pks IS NULL THEN
        RETURN 0;
    END IF;
    EXECUTE format(
        'DELETE FROM {schema}.rows_%s n USING (SELECT DISTINCT * FROM unnest($1, $2)) AS k(pk, rk)
         WHERE n.table_id = $3 AND n.pk = k.pk AND n.rk = k.rk', to_place)
        USING all_pks, all_rks, moved;
    EXECUTE format(
        'INSERT INTO {schema}.rows_%s SELECT r.* FROM (SELECT DISTINCT * FROM unnest($1, $2)) AS k(pk, rk)
         CROSS JOIN LATERAL (
            SELECT r.* FROM {schema}.rows r WHERE r.table_id = $3 AND r.pk = k.pk AND r.rk = k.rk OFFSET 0
         ) r', to_place)
        USING all_pks, all_rks, moved;
    RETURN cardinality(all_pks);
END $$;

-- Everything happens in the server, so that no front end that is slow or frozen keeps the writers waiting, and the caller's
-- `statement_timeout` bounds how long they wait. `outcome` is empty, or says why the table stays where it is.
CREATE PROCEDURE {schema}.end_move(moved bigint, to_place bigint, INOUT outcome text) LANGUAGE plpgsql AS $$
BEGIN
    outcome := '';
    UPDATE {schema}.fences f SET is_frozen = true, epoch = epoch + 1 WHERE f.table_id = moved AND f.moves_to = to_place;
    COMMIT;
    BEGIN
        PERFORM {schema}.wait_for_writers();
        WHILE {schema}.copy_changes(moved, to_place, 10000) > 0 LOOP
        END LOOP;
        UPDATE {schema}.fences f SET place = to_place, moves_to = NULL, is_frozen = false, epoch = epoch + 1
        WHERE f.table_id = moved AND f.moves_to = to_place;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the table was dropped meanwhile';
        END IF;
        UPDATE {schema}.places p SET leaves_rows = true WHERE p.place = to_place;
    EXCEPTION WHEN OTHERS OR query_canceled THEN
        outcome := SQLERRM;
    END;
    IF outcome <> '' THEN
        UPDATE {schema}.fences f SET moves_to = NULL, is_frozen = false, epoch = epoch + 1
        WHERE f.table_id = moved AND f.moves_to = to_place;
    END IF;
    COMMIT;
END $$;

-- Takes back the marks of movers that are gone. Nothing else has changed by then. False: there is a mover.
CREATE FUNCTION {schema}.undo_moves() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock({lock_class}, 4) THEN
        RETURN false;
    END IF;
    UPDATE {schema}.fences f SET moves_to = NULL, is_frozen = false, epoch = epoch + 1 WHERE f.moves_to IS NOT NULL;
    RETURN true;
END $$;

-- The catalogue and the settings are always there.
INSERT INTO {schema}.fences (table_id, epoch, place) VALUES (0, 1, 0), (1, 1, 0);
INSERT INTO {schema}.meta (format) VALUES ({format});
