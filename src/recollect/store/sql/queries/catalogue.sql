-- guards: what keeps tenants apart, line by line; the owner's name is 'owner', and partitions are those of a table
WITH space AS (SELECT oid, nspowner, nspacl FROM pg_namespace WHERE nspname = 'recollect'),
roles AS (SELECT oid, CASE WHEN oid = (SELECT nspowner FROM space) THEN 'owner' ELSE rolname::text END AS name FROM pg_roles
          UNION ALL SELECT 0, 'public'),
relations AS (
    SELECT c.oid, c.relowner, c.relkind, c.relacl, c.relrowsecurity, c.relforcerowsecurity, c.relispartition,
           CASE WHEN c.relispartition THEN 'partition of ' || i.inhparent::regclass::text ELSE c.relname::text END AS name
    FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
    WHERE c.relnamespace = (SELECT oid FROM space) AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')),
routines AS (
    SELECT p.*, p.oid::regprocedure::text AS name FROM pg_proc p WHERE p.pronamespace = (SELECT oid FROM space)),
grants AS (
    SELECT 'schema recollect' AS subject, nspowner AS owner, coalesce(nspacl, acldefault('n', nspowner)) AS acl FROM space
    UNION ALL SELECT CASE relkind WHEN 'S' THEN 'sequence ' ELSE 'table ' END || name, relowner,
           coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner)) FROM relations
    UNION ALL SELECT 'column ' || r.name || '.' || a.attname, r.relowner, a.attacl
        FROM relations r JOIN pg_attribute a ON a.attrelid = r.oid WHERE a.attacl IS NOT NULL
    UNION ALL SELECT 'function ' || name, proowner, coalesce(proacl, acldefault('f', proowner)) FROM routines
    UNION ALL SELECT 'later objects of ' || coalesce(o.name, '?'), d.defaclrole, d.defaclacl
        FROM pg_default_acl d LEFT JOIN roles o ON o.oid = d.defaclrole
        WHERE d.defaclnamespace IN (0, (SELECT oid FROM space)) AND d.defaclrole = (SELECT nspowner FROM space)),
lines (line) AS (
    SELECT 'table ' || r.name || ': kind ' || r.relkind::text || ', owner ' || o.name
        || CASE WHEN r.relrowsecurity THEN ', row-level security' ELSE '' END
        || CASE WHEN r.relforcerowsecurity THEN ', forced' ELSE '' END
    FROM relations r JOIN roles o ON o.oid = r.relowner
    UNION SELECT 'policy ' || p.polname || ' on ' || r.name || ': ' || CASE WHEN p.polpermissive THEN 'permissive' ELSE 'restrictive' END
        || ' for ' || p.polcmd::text || ' to ' || array_to_string(ARRAY(SELECT o.name FROM roles o WHERE o.oid = ANY (p.polroles)
                                                                  ORDER BY o.name COLLATE "C"), ' ')
        || ' using ' || coalesce(pg_get_expr(p.polqual, p.polrelid), 'nothing')
        || ' with check ' || coalesce(pg_get_expr(p.polwithcheck, p.polrelid), 'nothing')
    FROM pg_policy p JOIN relations r ON r.oid = p.polrelid
    UNION SELECT 'grant on ' || g.subject || ': ' || string_agg(a.privilege_type
            || CASE WHEN a.is_grantable THEN ' with grant option' ELSE '' END, ' ' ORDER BY a.privilege_type COLLATE "C")
            || ' to ' || coalesce(o.name, '?')
    FROM grants g CROSS JOIN LATERAL aclexplode(g.acl) a LEFT JOIN roles o ON o.oid = a.grantee
    WHERE a.grantee <> g.owner GROUP BY g.subject, o.name
    UNION SELECT 'function ' || r.name || ': ' || l.lanname || ' ' || r.prokind::text || r.provolatile::text || r.proparallel::text
        || ', owner ' || o.name || CASE WHEN r.prosecdef THEN ', security definer' ELSE '' END
        || CASE WHEN r.proleakproof THEN ', leakproof' ELSE '' END || CASE WHEN r.proisstrict THEN ', strict' ELSE '' END
        || coalesce(', ' || array_to_string(r.proconfig, ' '), '') || ', body ' || md5(r.prosrc)
    FROM routines r JOIN roles o ON o.oid = r.proowner JOIN pg_language l ON l.oid = r.prolang
    UNION SELECT 'trigger ' || t.tgname || ' on ' || r.name || ': ' || t.tgenabled::text || ' ' || pg_get_triggerdef(t.oid)
    FROM pg_trigger t JOIN relations r ON r.oid = t.tgrelid WHERE NOT t.tgisinternal AND NOT r.relispartition
    UNION SELECT 'trigger of a key on ' || r.name || ': ' || t.tgenabled::text
    FROM pg_trigger t JOIN relations r ON r.oid = t.tgrelid WHERE t.tgisinternal AND t.tgenabled <> 'O'
    UNION SELECT 'rule ' || w.rulename || ' on ' || r.name || ': ' || pg_get_ruledef(w.oid)
    FROM pg_rewrite w JOIN relations r ON r.oid = w.ev_class
    UNION SELECT 'object: ' || pg_describe_object(d.classid, d.objid, d.objsubid) FROM pg_depend d
    WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = (SELECT oid FROM space)
      AND d.classid NOT IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_default_acl'::regclass)
    UNION SELECT 'event trigger ' || e.evtname || ': runs ' || e.evtfoid::regprocedure::text FROM pg_event_trigger e
    JOIN pg_proc p ON p.oid = e.evtfoid
    WHERE e.evtowner = (SELECT nspowner FROM space) OR p.pronamespace = (SELECT oid FROM space)
    UNION SELECT 'role recollect_app: ordinary' || CASE WHEN a.rolsuper THEN ' superuser' ELSE '' END
        || CASE WHEN a.rolbypassrls THEN ' bypassrls' ELSE '' END || CASE WHEN a.rolcreaterole THEN ' createrole' ELSE '' END
        || CASE WHEN a.rolcreatedb THEN ' createdb' ELSE '' END || CASE WHEN a.rolreplication THEN ' replication' ELSE '' END
    FROM pg_roles a WHERE a.rolname = 'recollect_app'
    UNION SELECT 'role recollect_app: member of ' || o.name FROM pg_auth_members m
    JOIN pg_roles a ON a.oid = m.member AND a.rolname = 'recollect_app' JOIN roles o ON o.oid = m.roleid
    UNION SELECT 'role recollect_app: may create objects in the schema public' FROM pg_roles a
    WHERE a.rolname = 'recollect_app' AND has_schema_privilege(a.oid, 'public', 'CREATE')
    UNION SELECT 'role recollect_app: may create schemas' FROM pg_roles a
    WHERE a.rolname = 'recollect_app' AND has_database_privilege(a.oid, current_database(), 'CREATE')
    UNION SELECT 'setting: ' || setting || ' for ' || coalesce(o.name, 'every role')
    FROM pg_db_role_setting s CROSS JOIN unnest(s.setconfig) AS setting LEFT JOIN roles o ON o.oid = s.setrole AND s.setrole <> 0
    WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
      AND (setting LIKE 'recollect.%%' OR o.name = 'recollect_app'))
SELECT line FROM lines WHERE line IS NOT NULL

-- structure: columns, constraints, indexes, sequences and how tables are stored, line by line
WITH relations AS (
    SELECT c.oid, c.relname::text AS name, c.relkind, c.reloptions FROM pg_class c
    WHERE c.relnamespace = 'recollect'::regnamespace AND NOT c.relispartition AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S'))
SELECT line FROM (
    SELECT 'column ' || r.name || '.' || a.attname || ': ' || format_type(a.atttypid, a.atttypmod)
        || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
        || CASE a.attidentity WHEN '' THEN '' ELSE ' identity ' || a.attidentity::text END
        || CASE a.attgenerated WHEN '' THEN '' ELSE ' generated' END || coalesce(' ' || pg_get_expr(d.adbin, d.adrelid), '')
        || CASE WHEN a.attstorage = t.typstorage THEN '' ELSE ', storage ' || a.attstorage::text END
        || CASE WHEN a.attstattarget >= 0 THEN ', statistics ' || a.attstattarget ELSE '' END
    FROM relations r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_attrdef d ON d.adrelid = r.oid AND d.adnum = a.attnum
    WHERE r.relkind <> 'S'
    UNION SELECT 'constraint ' || k.conname || ' on ' || r.name || ': ' || pg_get_constraintdef(k.oid)
    FROM pg_constraint k JOIN relations r ON r.oid = k.conrelid
    WHERE k.contype <> 'n' AND k.conparentid = 0
    UNION SELECT 'index ' || c.relname || ' on ' || r.name || ': ' || pg_get_indexdef(i.indexrelid)
        || CASE WHEN i.indisvalid THEN '' ELSE ', not valid' END
    FROM pg_index i JOIN relations r ON r.oid = i.indrelid JOIN pg_class c ON c.oid = i.indexrelid
    WHERE NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid)
    UNION SELECT 'sequence ' || r.name || ': ' || format_type(s.seqtypid, NULL) || ' from ' || s.seqstart || ' by ' || s.seqincrement
        || coalesce((SELECT ', of ' || d.refobjid::regclass || '.' || a.attname FROM pg_depend d
                     JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
                     WHERE d.classid = 'pg_class'::regclass AND d.objid = r.oid AND d.deptype IN ('a', 'i')), '')
    FROM relations r JOIN pg_sequence s ON s.seqrelid = r.oid
    UNION SELECT 'storage ' || r.name || ': ' || array_to_string(r.reloptions, ', ') FROM relations r
    UNION SELECT 'storage ' || r.name || ': partitioned by ' || pg_get_partkeydef(r.oid) FROM relations r WHERE r.relkind = 'p'
) AS lines (line)
WHERE line IS NOT NULL

-- unknown_routines: functions of the schema besides those that are known, but for an extension's
SELECT p.oid::regprocedure::text FROM pg_proc p
WHERE p.pronamespace = 'recollect'::regnamespace AND p.oid::regprocedure::text <> ALL (%(known)s)
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')

-- free_routines: functions of the schema that nothing in the database refers to, but for an extension's
SELECT p.oid::regprocedure::text FROM pg_proc p
WHERE p.pronamespace = 'recollect'::regnamespace
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid)

-- digest: of what keeps tenants apart
SELECT encode(sha256(convert_to(coalesce(string_agg(line, E'\n' ORDER BY line COLLATE "C"), ''), 'UTF8')), 'hex')
FROM (GUARDS) AS guards
